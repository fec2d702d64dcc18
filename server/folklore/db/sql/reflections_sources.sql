-- What may become part of a reflection: the newest :most living memories that no reflection is and that do not expire,
-- with their vectors in :model (raw halfvec bytes). Ids are of the time they were made, so they sort by age.
select m.id, m.digest, halfvec_send(e.vector) as vector
from memories m
join embeddings e on e.namespace_id = m.namespace_id and e.model_id = :model::uuid and e.memory_id = m.id
where m.namespace_id = :namespace::uuid and m.forgotten_at is null and m.superseded_at is null
    and m.expires_at is null and m.trust <> 'derived'
order by m.id desc
limit :most::integer
