-- The next :most memories of :namespace after :after, by id, without an embedding in :model. Forgotten memories need
-- none until they are restored; superseded ones do, since `as_of` still finds them. A text that no embedding can be made of
-- stays pending: a caller that always begins at FIRST reads it forever.
select m.id, m.content, m.digest
from memories m
where m.namespace_id = :namespace::uuid and m.id > :after::uuid and m.forgotten_at is null
    and not exists (
        select from embeddings e
        where e.namespace_id = m.namespace_id and e.model_id = :model::uuid and e.memory_id = m.id and e.passage = 0
    )
order by m.id
limit :most::integer
