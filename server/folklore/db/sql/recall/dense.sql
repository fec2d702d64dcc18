-- The :fetch nearest memories by exact search. Vectors have length 1, so that the inner product is the cosine. The scan
-- reads the narrow table alone; visibility is checked in order of cosine, until enough memories are found. :scan limits
-- how many are checked; null checks all. A memory counts with its best passage: of :scan passages some belong to the
-- same memory.
with
-- include others
scored as (
    select namespace_id, memory_id, -(vector <#> :query::halfvec) as score
    from embeddings
    where namespace_id = any(:namespaces::uuid[]) and model_id = :model::uuid
)
select ranked.memory_id as id, ranked.score, ranked.score as mass, ranked.namespace_id
from (
    select namespace_id, memory_id, max(score) as score
    from (
        select namespace_id, memory_id, score from scored  -- no vector, which the sort would copy for every row
        order by score desc, memory_id
        limit :scan::integer
    ) passages
    group by memory_id, namespace_id
    order by score desc, memory_id
) ranked
-- include ranked
