-- Write the embeddings of memories, one for each passage; :ids, :places, :passages, :begins, :ends, :shares and
-- :vectors belong together. A passage has its share of its memory's length.
insert into embeddings (namespace_id, model_id, memory_id, passage, passages, begins, ends, length, vector)
select m.namespace_id, :model::uuid, given.id, given.passage, given.passages, given.begins, given.ends,
    ceil(folklore_length(m.search) * given.share)::smallint, given.vector
from unnest(:ids::uuid[], :places::smallint[], :passages::smallint[], :begins::smallint[], :ends::smallint[], :shares::real[],
    :vectors::halfvec[]) as given (id, passage, passages, begins, ends, share, vector)
join memories m on m.namespace_id = :namespace::uuid and m.id = given.id
on conflict (namespace_id, model_id, memory_id, passage)
    do update set passages = excluded.passages, begins = excluded.begins, ends = excluded.ends, length = excluded.length,
        vector = excluded.vector
