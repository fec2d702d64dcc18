-- The :max_relations strongest relations of a memory `seed`, in both directions.
    cross join lateral (
        select found.id, max(found.strength) as strength
        from (
            select r.to_id as id, r.strength from relations r
            where r.namespace_id = seed.namespace_id and r.from_id = seed.id
            union all
            select r.from_id, r.strength from relations r
            where r.namespace_id = seed.namespace_id and r.to_id = seed.id
        ) found
        group by found.id
        order by strength desc, found.id
        limit :max_relations::integer
    ) linked
