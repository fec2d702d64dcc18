-- Insert a token. An external one that two workers see at the same time is inserted once.
insert into tokens (id, principal_id, digest, owner, default_namespace_id, agent, issuer, created_at, created_by, expires_at)
values (:id::uuid, :principal::uuid, :digest::bytea, :owner::boolean, :home::uuid, :agent::text, :issuer::text,
    :now::timestamptz, :author::text, :expires_at::timestamptz)
on conflict (digest) do nothing
returning id
