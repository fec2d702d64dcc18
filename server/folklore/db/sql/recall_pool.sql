-- The candidates :ids, whoever stands at most :reach places beside one of :lenders (of the same) in its session, and, if
-- :related, the :ties strongest that each of them has a relation with, either way; whole, with their vectors in :model (raw
-- halfvec bytes; null where one is owed), their length in lexemes, and which lenders they are tied to, how strongly. What
-- was forgotten since the branches ran drops out here.
with seed as materialized (
    select m.namespace_id, m.id, m.session, m.position
    from unnest(:ids::uuid[]) as asked (id)
    join memories m on m.namespace_id = any(:namespaces::uuid[]) and m.id = asked.id
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
    join memories near on near.namespace_id = seed.namespace_id and near.session = seed.session
        and near.position between seed.position - :reach::integer and seed.position + :reach::integer
    where :reach::integer > 0 and seed.id = any(:lenders::uuid[])
    union
    select tie.namespace_id, tie.id from tie
)
select
-- include record
    , halfvec_send(e.vector) as vector, e.length, tied.lenders, tied.strengths
from member
join memories m on m.namespace_id = member.namespace_id and m.id = member.id
left join embeddings e on e.namespace_id = member.namespace_id and e.memory_id = member.id
    and e.model_id = :model::uuid and e.passage = 0
left join lateral (
    select array_agg(tie.lender order by tie.lender) as lenders, array_agg(tie.strength order by tie.lender) as strengths
    from tie
    where tie.id = member.id
) tied on true
where
-- include visible
