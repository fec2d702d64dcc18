-- The :fetch best visible memories of `ranked` (namespace_id, memory_id, score).
cross join lateral (
    select from (
-- include state
        where o.namespace_id = ranked.namespace_id and o.id = ranked.memory_id
    ) m
    where
-- include visible
-- include unaltered
    limit 1  -- keeps the planner from joining all of memories first
) seen
order by ranked.score desc, ranked.memory_id
limit :fetch::integer
