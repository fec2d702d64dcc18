-- :ids and :vectors belong together, one vector a memory.
insert into embeddings (namespace_id, model_id, memory_id, passage, vector)
select :namespace::uuid, :model::uuid, given.id, 0, given.vector
from unnest(:ids::uuid[], :vectors::halfvec[]) as given (id, vector)
on conflict (namespace_id, model_id, memory_id, passage) do update set vector = excluded.vector
