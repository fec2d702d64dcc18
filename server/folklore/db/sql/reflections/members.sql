select m.id, m.content, m.language, coalesce(m.occurred_at, m.created_at) as happened
from memories m
where m.namespace_id = :namespace::uuid and m.id = any(:ids::uuid[])
