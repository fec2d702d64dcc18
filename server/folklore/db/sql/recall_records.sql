-- The candidates :ids whole, with their vectors in the model :model (raw halfvec bytes; null where one is owed).
-- A memory that was forgotten since the branches ran drops out here.
select
-- include record
    , halfvec_send(e.vector) as vector
from memories m
left join embeddings e on e.namespace_id = m.namespace_id and e.memory_id = m.id
    and e.model_id = :model::uuid and e.passage = 0
where m.namespace_id = any(:namespaces::uuid[]) and m.id = any(:ids::uuid[]) and m.forgotten_at is null
