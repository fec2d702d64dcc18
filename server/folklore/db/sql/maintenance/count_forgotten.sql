select count(*) as count
from memories m
where m.namespace_id = :namespace::uuid and m.forgotten_at < :before::timestamptz
