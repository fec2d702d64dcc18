-- Write the embeddings :vectors in :model of the memories :ids, whose digests were :digests when their texts were
-- read. A memory that is gone or whose text has changed since is left out and stays pending. The rows are locked: a
-- concurrent change of a text waits, then finds this embedding of the old text and deletes it. Rows that another
-- transaction has locked are skipped and stay pending: stores lock in the order of digests, so waiting here could
-- deadlock. The embeddings are those of embeddings/insert, for which :of names the memories.
with current as materialized (
    select m.id, m.search
    from unnest(:ids::uuid[], :digests::bytea[]) as given (id, digest)
    join memories m on m.namespace_id = :namespace::uuid and m.id = given.id and m.digest = given.digest
    order by m.id
    for share of m skip locked
)
insert into embeddings (namespace_id, model_id, memory_id, passage, passages, begins, ends, length, vector)
select :namespace::uuid, :model::uuid, current.id, given.passage, given.passages, given.begins, given.ends,
    ceil(folklore_length(current.search) * given.share)::smallint, given.vector
from current
join unnest(:of::uuid[], :places::smallint[], :passages::smallint[], :begins::smallint[], :ends::smallint[], :shares::real[],
    :vectors::halfvec[]) as given (id, passage, passages, begins, ends, share, vector) on given.id = current.id
where not exists (
    select from embeddings e
    where e.namespace_id = :namespace::uuid and e.model_id = :model::uuid and e.memory_id = current.id
)
on conflict (namespace_id, model_id, memory_id, passage) do nothing
returning memory_id, passage
