-- The candidates :ids; memories at most :reach positions from one of :lenders (candidates too) in its session; and, if
-- :related, the :ties strongest relations of each of them. Whole memories with their vectors in :model (raw halfvec
-- bytes; null while pending), their length in lexemes, and the related :lenders with the strengths. Memories that were
-- forgotten since the branches ran are left out. Each memory is looked up by its key: a join, whose order the planner
-- may change, may read all memories.
with seed as materialized (
    select m.namespace_id, m.id, m.session, m.position
    from memories m
    where m.namespace_id = any(:namespaces::uuid[]) and m.id = any(:ids::uuid[])
),
tie as materialized (
    select seed.namespace_id, tied.id, seed.id as lender, tied.strength
    from seed
-- include tied
    where :related::boolean and seed.id = any(:lenders::uuid[])
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
    where :reach::integer > 0 and seed.id = any(:lenders::uuid[])
    union
    select tie.namespace_id, tie.id from tie
)
select
-- include record
    , halfvec_send(e.vector) as vector, e.length, tied.lenders, tied.strengths
from member
cross join lateral (
    select o.* from memories o where o.namespace_id = member.namespace_id and o.id = member.id limit 1
) m
-- include pool_vectors
left join lateral (
    select array_agg(tie.lender order by tie.lender) as lenders, array_agg(tie.strength order by tie.lender) as strengths
    from tie
    where tie.id = member.id
) tied on true
where
-- include visible
