-- The candidates :ids; memories at most :reach positions from one of :spreading (candidates too) in its session; and,
-- if :related, the :max_relations strongest relations of each of them. Whole memories with their vectors in :model (raw
-- halfvec bytes; null while pending), their length in lexemes, the passages of long ones, the ids of related :spreading
-- with the strengths, and the ids of visible memories that contradict them. Memories that were forgotten since the
-- branches ran are left out. Each memory is looked up by its key: a join, whose order the planner may change, may read
-- all memories.
with seed as materialized (
    select m.namespace_id, m.id, m.session, m.position
    from memories m
    where m.namespace_id = any(:namespaces::uuid[]) and m.id = any(:ids::uuid[])
),
link as materialized (
    select seed.namespace_id, linked.id, seed.id as source, linked.strength
    from seed
-- include linked
    where :related::boolean and seed.id = any(:spreading::uuid[])
),
member as materialized (
    select seed.namespace_id, seed.id from seed
    union
    select near.namespace_id, near.id
    from seed
    cross join lateral (
        select m.namespace_id, m.id
        from memories m
        where m.namespace_id = seed.namespace_id and m.session = seed.session
            and m.position between seed.position - :reach::integer and seed.position + :reach::integer
        offset 0
    ) near
    where :reach::integer > 0 and seed.id = any(:spreading::uuid[])
    union
    select link.namespace_id, link.id from link
),
opposed as materialized (
    select pair.id, array_agg(distinct pair.other order by pair.other) as ids
    from (
        select r.namespace_id, r.from_id as id, r.to_id as other
        from relations r
        where r.namespace_id = any(:namespaces::uuid[]) and r.from_id = any(:ids::uuid[]) and r.type = 'contradicts'
        union all
        select r.namespace_id, r.to_id, r.from_id
        from relations r
        where r.namespace_id = any(:namespaces::uuid[]) and r.to_id = any(:ids::uuid[]) and r.type = 'contradicts'
    ) pair
    cross join lateral (
        select from memories m
        where m.namespace_id = pair.namespace_id and m.id = pair.other
            and
-- include alive
        limit 1  -- keeps the planner from joining all of memories
    ) seen
    group by pair.id
)
select
-- include record
    , halfvec_send(e.vector) as vector, e.length, e.passages, e.cosines, linked.sources, linked.strengths, opposed.ids as contradicts
from member
cross join lateral (
-- include state
    where o.namespace_id = member.namespace_id and o.id = member.id
    limit 1
) m
-- include pool_vectors
left join lateral (
    select array_agg(link.source order by link.source) as sources, array_agg(link.strength order by link.source) as strengths
    from link
    where link.id = member.id
) linked on true
left join opposed on opposed.id = member.id
where
-- include visible
