-- name: begin. Make a session of a link.
update console_sessions
set digest = :new_digest::bytea, sealed_key = :sealed_key::bytea, begun_at = :now::timestamptz,
    expires_at = :expires_at::timestamptz
where digest = :digest::bytea

-- name: delete
delete from console_sessions where digest = :digest::bytea

-- name: delete_expired. Delete at most :batch sessions and links that expired.
delete from console_sessions
where digest in (
    select digest from console_sessions where expires_at <= :now::timestamptz order by expires_at limit :batch::integer
)
returning digest

-- name: find. The session with this digest, and the digest of its token. Runs before every request of the console.
select s.sealed_key, s.anonymous, s.expires_at, t.digest as token_digest
from console_sessions s
left join tokens t on t.id = s.token_id
where s.digest = :digest::bytea and s.begun_at is not null

-- name: insert. Insert a session, or a link if :begun_at is null.
insert into console_sessions (digest, token_id, sealed_key, anonymous, created_at, begun_at, expires_at)
values (:digest::bytea, :token::uuid, :sealed_key::bytea, :anonymous::boolean, :now::timestamptz,
    :begun_at::timestamptz, :expires_at::timestamptz)

-- name: lock_link. The link with this digest, if it is valid, and the principal of its token. A second exchange waits
-- for the first, and then finds no row: its digest has changed.
select s.token_id, s.sealed_key,
    (select p.name from tokens t join principals p on p.id = t.principal_id where t.id = s.token_id) as principal
from console_sessions s
where s.digest = :digest::bytea and s.begun_at is null and s.expires_at > :now::timestamptz for update of s
