-- Write the embeddings :vectors in :model of the memories :ids, whose digests were :digests when their texts were
-- read. A memory that is gone or whose text has changed since is left out and stays pending. The rows are locked: a
-- concurrent change of a text waits, then finds this embedding of the old text and deletes it. Rows that another
-- transaction has locked are skipped and stay pending: stores lock in the order of digests, so waiting here could
-- deadlock.
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
