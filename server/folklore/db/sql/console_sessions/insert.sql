-- Insert a session, or a link if :begun_at is null.
insert into console_sessions (digest, token_id, sealed_key, anonymous, created_at, begun_at, expires_at)
values (:digest::bytea, :token::uuid, :sealed_key::bytea, :anonymous::boolean, :now::timestamptz,
    :begun_at::timestamptz, :expires_at::timestamptz)
