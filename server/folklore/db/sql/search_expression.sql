-- Memories that satisfy the expression :expression (a tsquery), best first: by the weight of the lexemes that speak for
-- them, then the newest. :lexemes and :weights belong together  :prior as in recall_keyword
-- Of very many matches (a short prefix) the :bound newest are ranked. The columns are those of recall_keyword.
with matched as materialized (
    select m.namespace_id, m.id, coalesce(m.occurred_at, m.created_at) as happened
    from memories m
    where m.namespace_id = any(:namespaces::uuid[])
        and m.search @@ :expression::tsquery
        and
-- include visible
    order by happened desc, m.id
    limit :bound::integer
),
scored as materialized (
    select matched.id, matched.happened, coalesce(weighed.score, 0) as score
    from matched
    left join lateral (
        select sum(given.weight * (2.0::float8 * p.frequency / (p.frequency + 1.0::float8)))
            / (min(p.length) + :prior::float8) as score
        from unnest(:lexemes::text[], :weights::float8[]) as given (lexeme, weight)
        join postings p on p.lexeme = given.lexeme
        where p.namespace_id = matched.namespace_id and p.namespace_id = any(:namespaces::uuid[])
            and p.memory_id = matched.id
    ) weighed on true
),
spread as (
    select sum(score) as total, sum(score * score) as squares, count(*) as considered,
        array_agg(id) as known_ids, array_agg(score) as known_scores
    from scored
)
select scored.id, scored.score, spread.*
from scored
cross join spread
order by scored.score desc, scored.happened desc, scored.id
limit :fetch::integer
