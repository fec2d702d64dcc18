-- The :fetch nearest memories through the HNSW index over all vectors of {model}, which has {dimensions} dimensions:
-- recall/nearest:256:<id>. The index passes over other namespaces until it has found the :scan best passages; a memory
-- counts with its best one as in recall/dense, and hidden memories are left out. Nearly exact; it may return fewer than
-- :fetch. The model is part of the text, so that a kept plan may use the index, which is over this model alone. Without
-- the index the result is the same, but slower.
with
-- include left_out
near as (
    select e.namespace_id, e.memory_id, -(e.vector <#> :query::halfvec) as score
    from embeddings e
    where e.namespace_id = any(:namespaces::uuid[]) and e.model_id = '{model}'
    order by e.vector::halfvec({dimensions}) <#> :query::halfvec
    limit :scan::integer
)
select ranked.memory_id as id, ranked.score, ranked.score as mass, ranked.namespace_id
from (
    select near.namespace_id, near.memory_id, max(near.score) as score
    from near
    group by near.memory_id, near.namespace_id
    order by score desc, near.memory_id
) ranked
-- include ranked
