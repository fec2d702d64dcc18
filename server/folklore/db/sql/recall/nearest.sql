-- The :fetch nearest memories of one large namespace through its HNSW index, for queries without filters. The index
-- holds each vector with the size of its text (folklore_sized), and :sized is the query with a number that subtracts
-- :slope times size, so that the index returns the :scan best passages by score; a memory counts with its best passage
-- as in recall/dense, hidden memories are left out. Nearly exact; it may return fewer than :fetch. It needs plans made for the parameters:
-- only then does the planner see that the index covers them. {dimensions} is one more than the model has:
-- recall/nearest:257 for 256. Without the index the result is the same, but slower.
select ranked.memory_id as id, ranked.score, ranked.mass
from (
    select near.namespace_id, near.memory_id, max(near.score) as score, (max(array[near.score, near.mass]))[2] as mass
    from (
        select namespace_id, memory_id, mass, mass - :slope::float8 * ln(length + 30.0::float8)
-- include chance
            as score
        from (
            select e.namespace_id, e.memory_id, e.passage, e.passages, e.length, -(e.vector <#> :query::halfvec) as mass
            from embeddings e
            where e.namespace_id = :namespace::uuid and e.model_id = :model::uuid
            order by folklore_sized(e.vector, e.length)::halfvec({dimensions}) <#> :sized::halfvec
            limit :scan::integer
        ) found
    ) near
    group by near.memory_id, near.namespace_id
    order by score desc, near.memory_id
) ranked
-- include ranked
