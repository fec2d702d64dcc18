    , (select count(*) from (
        select from memories m
        where m.namespace_id = n.id and m.forgotten_at is null and m.superseded_at is null
            and not exists (
                select from embeddings e
                where e.namespace_id = n.id and e.model_id = :model::uuid and e.memory_id = m.id and e.passage = 0
            )
        limit 50000
    ) bounded) as without_vector
