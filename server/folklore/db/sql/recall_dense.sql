-- Exact nearest neighbours by cosine, :fetch of them. The scan reads the narrow table alone; visibility is asked of
-- memories in order of score, until enough are found. :scan bounds how many are asked about; null asks about all.
-- Long texts are near to every question: what is left of a similarity when the line through the scope, over the
-- logarithm of length + 30, is taken off is what it says. The line is drawn through :sample of them and trusted by
-- N / (N + 20).
with line as materialized (
    select coalesce(regr_slope(similarity, size), 0) * count(*) / (count(*) + 20) as slope, avg(size) as mean_size,
        avg(similarity) as mean_similarity, count(*) as considered
    from (
        select 1 - (e.vector <=> :query::halfvec) as similarity, ln(e.length + 30.0::float8) as size
        from embeddings e
        where e.namespace_id = any(:namespaces::uuid[]) and e.model_id = :model::uuid
        limit :sample::integer
    ) drawn
)
select ranked.memory_id as id, ranked.score, ranked.similarity as mass, ranked.considered
from (
    select e.namespace_id, e.memory_id, e.similarity, line.considered,
        e.similarity - line.mean_similarity - line.slope * (e.size - line.mean_size) as score
    from (
        select namespace_id, memory_id, 1 - (vector <=> :query::halfvec) as similarity,
            ln(length + 30.0::float8) as size
        from embeddings
        where namespace_id = any(:namespaces::uuid[]) and model_id = :model::uuid
        offset 0  -- so that each distance is computed once
    ) e, line
    order by 5 desc, 2
    limit :scan::integer
) ranked
cross join lateral (
    select from memories m
    where m.namespace_id = ranked.namespace_id and m.id = ranked.memory_id
        and
-- include visible
    limit 1  -- keeps the planner from joining all of memories first
) seen
order by ranked.score desc, ranked.memory_id
limit :fetch::integer
