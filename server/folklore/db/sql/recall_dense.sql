-- Exact nearest neighbours by cosine, :fetch of them. The scan reads the narrow table alone; visibility is asked of
-- memories in order of similarity, until enough are found.
-- total, squares and considered say how similarities lie over the whole scan; known_ids and known_scores are the :known
-- best of it, visible or not, for candidates that another branch proposed.
with scan as materialized (
    select e.namespace_id, e.memory_id, 1 - (e.vector <=> :query::halfvec) as score
    from embeddings e
    where e.namespace_id = any(:namespaces::uuid[]) and e.model_id = :model::uuid
),
spread as materialized (
    select sum(score) as total, sum(score * score) as squares, count(*) as considered from scan
),
known as materialized (
    select array_agg(memory_id) as ids, array_agg(score) as scores
    from (select memory_id, score from scan order by score desc, memory_id limit :known::integer) best
)
select best.memory_id as id, best.score, spread.total, spread.squares, spread.considered,
    known.ids as known_ids, known.scores as known_scores
from (
    select ranked.memory_id, ranked.score
    from (select namespace_id, memory_id, score from scan order by score desc, memory_id) ranked
    cross join lateral (
        select from memories m
        where m.namespace_id = ranked.namespace_id and m.id = ranked.memory_id
            and
-- include visible
        limit 1  -- keeps the planner from joining all of memories first
    ) seen
    order by ranked.score desc, ranked.memory_id
    limit :fetch::integer
) best
cross join spread
cross join known
order by best.score desc, best.memory_id
