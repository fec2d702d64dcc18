-- The :fetch best visible memories of `ranked` (namespace_id, memory_id, score).
cross join lateral (
    select from memories m
    where m.namespace_id = ranked.namespace_id and m.id = ranked.memory_id
        and
-- include visible
    limit 1  -- keeps the planner from joining all of memories first
) seen
order by ranked.score desc, ranked.memory_id
limit :fetch::integer
