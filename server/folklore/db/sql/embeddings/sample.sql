-- :most memories of :namespace that have an embedding in both models, spread evenly by a hash of their id and :one,
-- with their text, the same ones at every call.
select m.id, m.content
from memories m
join embeddings a on a.namespace_id = m.namespace_id and a.model_id = :one::uuid and a.memory_id = m.id
    and a.passage = 0
join embeddings b on b.namespace_id = m.namespace_id and b.model_id = :other::uuid and b.memory_id = m.id
    and b.passage = 0
where m.namespace_id = :namespace::uuid and m.forgotten_at is null and m.superseded_at is null
order by md5(m.id::text || :one::uuid::text)
limit :most::integer
