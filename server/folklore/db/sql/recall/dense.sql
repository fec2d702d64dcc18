-- The :fetch nearest by exact search. Vectors have length 1, so that the inner product is the cosine. The scan reads the
-- narrow table alone; visibility is asked of memories in order of score, until enough are found. :scan bounds how many
-- are asked about; null asks about all.
-- Long texts are near to every question: :slope is how similarity grows with the logarithm of length + 30 (ranking/length.py),
-- and is taken off. The order is by a computed score since this is no index scan. What does not pass the score :floor is
-- not sorted, which would take a fifth of the time; null leaves nothing out.
select ranked.memory_id as id, ranked.score, ranked.score + :slope::float8 * ln(ranked.length + 30.0::float8) as mass
from (
    select namespace_id, memory_id, length, score  -- no vector, which the sort would copy for every row
    from (
        select namespace_id, memory_id, length,
            -(vector <#> :query::halfvec) - :slope::float8 * ln(length + 30.0::float8) as score
        from embeddings
        where namespace_id = any(:namespaces::uuid[]) and model_id = :model::uuid
    ) scored
    where :floor::float8 is null or score > :floor::float8
    order by score desc, memory_id
    limit :scan::integer
) ranked
-- include ranked
