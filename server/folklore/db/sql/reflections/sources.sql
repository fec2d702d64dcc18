-- The newest :most memories that a reflection may be made from: in force, without expiry, no reflections themselves;
-- with the embeddings of their whole texts in :model (raw halfvec bytes). Ids sort by time of creation.
select m.id, m.digest, halfvec_send(e.vector) as vector
from memories m
join embeddings e on e.namespace_id = m.namespace_id and e.model_id = :model::uuid and e.memory_id = m.id
    and e.passage = 0
where m.namespace_id = :namespace::uuid and m.forgotten_at is null and m.superseded_at is null
    and m.expires_at is null and m.trust <> 'derived'
order by m.id desc
limit :most::integer
