-- Memories after :after that owe their vector in :model, by id. What is forgotten owes nothing.
select m.id, m.digest, m.content
from memories m
where m.namespace_id = :namespace::uuid and m.id > :after::uuid and m.forgotten_at is null
    and not exists (
        select from embeddings e
        where e.namespace_id = m.namespace_id and e.model_id = :model::uuid and e.memory_id = m.id and e.passage = 0
    )
order by m.id
limit :batch::integer
