select count(*) as count
from memories m
where m.namespace_id = :namespace::uuid and m.expires_at <= :now::timestamptz
    and {m.ends_at} <= :now::timestamptz and m.forgotten_at is null
