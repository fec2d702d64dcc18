-- The link with this digest, if it is valid, and the principal of its token. A second exchange waits for the first, and then
-- finds no row: its digest has changed.
select s.token_id, s.sealed_key,
    (select p.name from tokens t join principals p on p.id = t.principal_id where t.id = s.token_id) as principal
from console_sessions s
where s.digest = :digest::bytea and s.begun_at is null and s.expires_at > :now::timestamptz
for update of s
