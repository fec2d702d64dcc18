-- The candidates :ids, whoever stands at most :reach places beside one of :lenders (of the same) in its session, and, if
-- :related, the :ties strongest that each of them has a relation with, either way; whole, with their vectors in :model (raw
-- halfvec bytes; null where one is owed), their length in lexemes, and which lenders they are tied to, how strongly. What
-- was forgotten since the branches ran drops out here.
-- Each memory is looked up by its key: a join, which the planner may turn round, may read memories whole.
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
