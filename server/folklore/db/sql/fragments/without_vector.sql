-- The keys are compared first, from two indexes alone: only memories without an embedding are read.
    , (select count(*) from (
        select from (
            select m.id
            from memories m
            where m.namespace_id = n.id
                and not exists (
                    select from embeddings e
                    where e.namespace_id = n.id and e.model_id = :model::uuid and e.memory_id = m.id and e.passage = 0
                )
            offset 0
        ) missing
        join memories o on o.namespace_id = n.id and o.id = missing.id
        where o.forgotten_at is null and o.superseded_at is null
        limit 50000
    ) bounded) as pending_embeddings
