select r.namespace_id, r.memory_id, count(*) as revisions
from revisions r
where r.namespace_id = any(:namespaces::uuid[]) and r.memory_id = any(:ids::uuid[])
group by r.namespace_id, r.memory_id
