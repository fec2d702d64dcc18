-- Write the embeddings of memories, one for each passage; :ids, :places, :passages, :begins, :ends, :shares and
-- :vectors belong together. Lengths come from the postings, which are written first; a passage has its share of its memory's.
insert into embeddings (namespace_id, model_id, memory_id, passage, passages, begins, ends, length, vector)
select :namespace::uuid, :model::uuid, given.id, given.passage, given.passages, given.begins, given.ends,
    ceil(p.length * given.share)::smallint, given.vector
from unnest(:ids::uuid[], :places::smallint[], :passages::smallint[], :begins::smallint[], :ends::smallint[], :shares::real[],
    :vectors::halfvec[]) as given (id, passage, passages, begins, ends, share, vector)
join postings p on p.namespace_id = :namespace::uuid and p.lexeme = '' and p.memory_id = given.id
on conflict (namespace_id, model_id, memory_id, passage)
    do update set passages = excluded.passages, begins = excluded.begins, ends = excluded.ends, length = excluded.length,
        vector = excluded.vector
