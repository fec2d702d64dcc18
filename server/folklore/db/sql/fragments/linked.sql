-- The :max_relations strongest relations of a memory `seed` with memories in force, in both directions.
    cross join lateral (
        select found.id, max(found.strength) as strength
        from (
            select r.to_id as id, r.strength from relations r
            where r.namespace_id = seed.namespace_id and r.from_id = seed.id
            union all
            select r.from_id, r.strength from relations r
            where r.namespace_id = seed.namespace_id and r.to_id = seed.id
        ) found
        cross join lateral (
            select from memories m
            where m.namespace_id = seed.namespace_id and m.id = found.id
                and m.forgotten_at is null and m.superseded_at is null
            limit 1  -- keeps the planner from joining all of memories
        ) in_force
        group by found.id
        order by strength desc, found.id
        limit :max_relations::integer
    ) linked
