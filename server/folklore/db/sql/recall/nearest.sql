-- The :fetch nearest of one large namespace through its HNSW index, for questions without filters. The index holds each
-- vector with its text's size (folklore_sized), and :sized is the question with what takes :slope off, so the :scan rows
-- it brings are the best by score; who is hidden is left out. Nearly exact; it may bring fewer than :fetch. It needs plans
-- made for the parameters: only then does the planner see that the index covers them. {dimensions} stands for a number,
-- since an index of vectors without a size is over that size: `recall/nearest:257` for vectors of 256. Without the index
-- the answer is the same, only slower.
select ranked.memory_id as id, ranked.score, ranked.mass
from (
    select near.namespace_id, near.memory_id, near.mass,
        near.mass - :slope::float8 * ln(near.length + 30.0::float8) as score
    from (
        select e.namespace_id, e.memory_id, e.length, -(e.vector <#> :query::halfvec) as mass
        from embeddings e
        where e.namespace_id = :namespace::uuid and e.model_id = :model::uuid
        order by folklore_sized(e.vector, e.length)::halfvec({dimensions}) <#> :sized::halfvec
        limit :scan::integer
    ) near
    order by score desc, near.memory_id
    limit :scan::integer
) ranked
-- include ranked
