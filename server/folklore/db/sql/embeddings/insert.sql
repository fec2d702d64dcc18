-- Write one embedding for each memory; :ids and :vectors belong together. Lengths come from the postings, which are
-- written first.
insert into embeddings (namespace_id, model_id, memory_id, length, vector)
select :namespace::uuid, :model::uuid, given.id, p.length, given.vector
from unnest(:ids::uuid[], :vectors::halfvec[]) as given (id, vector)
join postings p on p.namespace_id = :namespace::uuid and p.lexeme = '' and p.memory_id = given.id
on conflict (namespace_id, model_id, memory_id)
    do update set vector = excluded.vector, length = excluded.length
