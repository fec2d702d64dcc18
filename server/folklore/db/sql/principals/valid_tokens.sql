-- Those of the tokens :ids that are neither revoked nor expired.
select id from tokens
where id = any(:ids::uuid[]) and revoked_at is null and (expires_at is null or expires_at > :now::timestamptz)
