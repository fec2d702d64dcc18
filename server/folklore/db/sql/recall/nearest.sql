-- The :fetch nearest memories of one large namespace through its HNSW index, for queries without filters: the index
-- returns the :scan best passages, a memory counts with its best one as in recall/dense, and hidden memories are left
-- out. Nearly exact; it may return fewer than :fetch. It needs plans made for the parameters: only then does the planner
-- see that the index covers them. {dimensions} are those of the model: recall/nearest:256. Without the index the result
-- is the same, but slower.
select ranked.memory_id as id, ranked.score, ranked.score as mass
from (
    select near.namespace_id, near.memory_id, max(near.score) as score
    from (
        select e.namespace_id, e.memory_id, -(e.vector <#> :query::halfvec) as score
        from embeddings e
        where e.namespace_id = :namespace::uuid and e.model_id = :model::uuid
        order by e.vector::halfvec({dimensions}) <#> :query::halfvec
        limit :scan::integer
    ) near
    group by near.memory_id, near.namespace_id
    order by score desc, near.memory_id
) ranked
-- include ranked
