-- The invitation with this digest, valid or not, and its token. The lock makes a second exchange wait for the first.
select i.token_id, i.expires_at, i.redeemed_at, t.revoked_at, t.digest as token_digest, p.name as principal
from invitations i
join tokens t on t.id = i.token_id
join principals p on p.id = t.principal_id
where i.digest = :digest::bytea
for update of i, t
