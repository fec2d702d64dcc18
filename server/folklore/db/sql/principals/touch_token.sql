-- The last use of a token; without an address, the last one stays.
update tokens set last_used_at = :now::timestamptz, last_address = coalesce(:address::text, last_address)
where id = :id::uuid and (last_used_at is null or last_used_at < :now::timestamptz)
