-- As transfer_open, with the vector of each memory in :model, null where it owes one.
declare folklore_transfer_vectors no scroll cursor for
select m.*, e.vector
from (
-- include transfer_entries
) m
left join embeddings e on e.namespace_id = :namespace::uuid and e.model_id = :model::uuid and e.memory_id = m.id
order by m.created_at, m.id
