-- :ids, :digests and :vectors belong together. A memory whose text is another by now gets no vector of the old one: its
-- row is held, so that nobody changes it between the look and the write. Who is being changed is left for the next run.
with held as materialized (
    select m.id, given.vector
    from unnest(:ids::uuid[], :digests::bytea[], :vectors::halfvec[]) as given (id, digest, vector)
    join memories m on m.namespace_id = :namespace::uuid and m.id = given.id and m.digest = given.digest
    where m.namespace_id = :namespace::uuid
    order by m.id
    for share of m skip locked
)
insert into embeddings (namespace_id, model_id, memory_id, passage, length, vector)
select :namespace::uuid, :model::uuid, held.id, 0, p.length, held.vector
from held
join postings p on p.namespace_id = :namespace::uuid and p.lexeme = '' and p.memory_id = held.id
on conflict (namespace_id, model_id, memory_id, passage) do nothing
returning memory_id
