-- The memories that satisfy the tsquery :expression, best first: by the weight of the lexemes they contain, then the
-- newest. The other parameters are those of recall/keyword. If very many match (a short prefix), the :bound newest are
-- ranked.
with matched as materialized (
    select m.namespace_id, m.id, m.search, coalesce(m.occurred_at, m.created_at) as happened
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
select matched.id, coalesce(weighed.score, 0) as score, coalesce(weighed.mass, 0) as mass
from matched
left join lateral (
    select sum(asked.weight *
-- include evidence
        ) as score,
        sum(asked.weight) as mass
    from (
        select found.lexeme, folklore_length(matched.search) as length,
            cardinality(array_remove(found.weights, 'C')) as frequency
        from unnest(matched.search) as found
    ) p
    join unnest(:lexemes::text[], :weights::float8[], :stems::text[]) as asked (lexeme, weight, stem)
        on asked.lexeme = p.lexeme
    where p.frequency > 0 and (asked.stem is null or not asked.stem = any(tsvector_to_array(matched.search)))
) weighed on true
order by score desc, matched.happened desc, matched.id
limit :fetch::integer
