-- The session with this digest, and the digest of its token. Runs before every request of the console.
select s.sealed_key, s.anonymous, s.expires_at, t.digest as token_digest
from console_sessions s
left join tokens t on t.id = s.token_id
where s.digest = :digest::bytea and s.begun_at is not null
