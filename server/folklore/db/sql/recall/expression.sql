-- The memories that satisfy the tsquery :expression, best first: by the weight of the lexemes they contain, then the
-- newest. The other parameters are those of recall/keyword. If very many match (a short prefix), the :bound newest are
-- ranked.
with matched as materialized (
    select m.namespace_id, m.id, coalesce(m.occurred_at, m.created_at) as happened
    from (
-- include state
        where o.namespace_id = any(:namespaces::uuid[])
            and
-- include matching
    ) m
    where
-- include visible
-- include unaltered
    order by happened desc, m.id
    limit :bound::integer
)
select matched.id, coalesce(weighed.score, 0) as score, coalesce(weighed.mass, 0) as mass,
    coalesce(weighed.bits, 0) as bits
from matched
left join lateral (
    select sum(asked.weight *
-- include evidence
        ) as score,
        sum(asked.weight) as mass,
        bit_or(case when asked.place <= 62 then 1::bigint << (asked.place - 1)::integer else 0 end) as bits
    from unnest(:lexemes::text[], :weights::float8[], :stems::text[]) with ordinality as asked (lexeme, weight, stem, place)
    join postings p on p.namespace_id = matched.namespace_id and p.lexeme = asked.lexeme and p.memory_id = matched.id
    where p.namespace_id = any(:namespaces::uuid[])
-- include once
) weighed on true
order by score desc, matched.happened desc, matched.id
limit :fetch::integer
