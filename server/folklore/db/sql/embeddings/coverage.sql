-- How many memories each namespace of :namespaces holds without the forgotten ones, and how many of them have an
-- embedding in :model. Reads these namespaces whole, and no other: embeddings name them too.
select m.namespace_id as namespace, count(*) as memories, count(e.memory_id) as embedded
from memories m
left join embeddings e on e.namespace_id = m.namespace_id and e.memory_id = m.id
    and e.namespace_id = any(:namespaces::uuid[]) and e.model_id = :model::uuid and e.passage = 0
where m.namespace_id = any(:namespaces::uuid[]) and m.forgotten_at is null
group by m.namespace_id
