-- How many memories of each namespace owe their vector in :model.
select m.namespace_id, count(*) as owed
from memories m
where m.namespace_id = any(:namespaces::uuid[]) and m.forgotten_at is null
    and not exists (
        select from embeddings e
        where e.namespace_id = m.namespace_id and e.model_id = :model::uuid and e.memory_id = m.id and e.passage = 0
    )
group by m.namespace_id
