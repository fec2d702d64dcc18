select n.name as namespace,
-- include record
from memories m
join namespaces n on n.id = m.namespace_id
where m.namespace_id = any(:namespaces::uuid[]) and m.id = any(:ids::uuid[])
