update tokens t set revoked_at = :now::timestamptz
from principals p
where p.id = t.principal_id and t.revoked_at is null
    and (t.id = any(:ids::uuid[]) or lower(p.name collate "C") = lower(:principal::text collate "C"))
returning t.id, p.name as principal
