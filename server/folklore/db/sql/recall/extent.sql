-- The planner's estimate of the number of vectors in these namespaces: it reads statistics, no vector.
explain (format json)
select from embeddings e where e.namespace_id = any(:namespaces::uuid[]) and e.model_id = :model::uuid
