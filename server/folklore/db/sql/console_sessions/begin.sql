-- Make a session of a link.
update console_sessions
set digest = :new_digest::bytea, sealed_key = :sealed_key::bytea, begun_at = :now::timestamptz,
    expires_at = :expires_at::timestamptz
where digest = :digest::bytea
