select concat_ws(' ', count(*), extract(epoch from max(m.updated_at)), count(m.forgotten_at), count(m.superseded_at),
    count(e.memory_id)) as fingerprint
from memories m
left join embeddings e on e.namespace_id = m.namespace_id and e.model_id = :model::uuid and e.memory_id = m.id
    and e.passage = 0
where m.namespace_id = :namespace::uuid and m.trust <> 'derived'
