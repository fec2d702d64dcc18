insert into invitations (token_id, digest, expires_at)
values (:token::uuid, :digest::bytea, :expires_at::timestamptz)
