-- The vectors :vectors in :model of the memories :ids, whose digests were :digests when their texts were read. A memory
-- whose text has changed since, or that is gone, takes none and owes on. The rows are locked: whoever changes a text at
-- the same time waits, and then finds this vector of the old one and takes it away. Rows that somebody holds are passed
-- over and owe on: stores confirm in the order of digests, and waiting here could close a ring of waiters.
with current as materialized (
    select m.id, given.vector
    from unnest(:ids::uuid[], :digests::bytea[], :vectors::halfvec[]) as given (id, digest, vector)
    join memories m on m.namespace_id = :namespace::uuid and m.id = given.id and m.digest = given.digest
    order by m.id
    for share of m skip locked
)
insert into embeddings (namespace_id, model_id, memory_id, length, vector)
select :namespace::uuid, :model::uuid, current.id, p.length, current.vector
from current
join postings p on p.namespace_id = :namespace::uuid and p.lexeme = '' and p.memory_id = current.id
on conflict (namespace_id, model_id, memory_id) do nothing
returning memory_id
