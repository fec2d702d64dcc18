-- The number of vectors of a model m, up to :threshold.
    cross join lateral (
        select count(*) as vectors
        from (select from embeddings e where e.model_id = m.id limit :threshold::integer) bounded
    ) counted
