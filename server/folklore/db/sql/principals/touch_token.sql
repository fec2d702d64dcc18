update tokens set last_used_at = :now::timestamptz
where id = :id::uuid and (last_used_at is null or last_used_at < :now::timestamptz)
