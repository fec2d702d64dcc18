-- The :fetch nearest memories by exact search. Vectors have length 1, so that the inner product is the cosine. The scan
-- reads the narrow table alone; visibility is checked in order of score, until enough memories are found. :scan limits
-- how many are checked; null checks all. Long texts are near to every query: :slope is the growth of similarity with
-- the logarithm of length + 30 and is subtracted. The order is by a computed score since no index is used here. Rows
-- below the score :floor are not sorted, which would take a fifth of the time; null sorts all. A memory counts with its
-- best passage: of :scan passages some belong to the same memory. The best of n passages is about :deviation * sqrt(2 ln
-- n) better than one, by chance, which is subtracted.
select ranked.memory_id as id, ranked.score, ranked.mass
from (
    select namespace_id, memory_id, max(score) as score, (max(array[score, cosine]))[2] as mass
    from (
        select namespace_id, memory_id, cosine, score  -- no vector, which the sort would copy for every row
        from (
            select namespace_id, memory_id, -(vector <#> :query::halfvec) as cosine,
                -(vector <#> :query::halfvec) - :slope::float8 * ln(length + 30.0::float8)
-- include chance
                as score
            from embeddings
            where namespace_id = any(:namespaces::uuid[]) and model_id = :model::uuid
        ) scored
        where :floor::float8 is null or score > :floor::float8
        order by score desc, memory_id
        limit :scan::integer
    ) passages
    group by memory_id, namespace_id
    order by score desc, memory_id
) ranked
-- include ranked
