-- The memories that contain any of :words, lexemes after '=' (folklore_words) of a query of function words alone, which
-- have no postings: first those with the most words, then the newest. If more than :bound match, the newest are ranked;
-- before them, those that contain one of :capitals, words of the query with an upper-case letter. Each word has the
-- weight :weight; mass and bits are those of recall/keyword.
with matched as materialized (
    select m.namespace_id, m.id, m.search, coalesce(m.occurred_at, m.created_at) as happened, (
            select count(*) from unnest(:capitals::text[]) as typed (word) where strpos(m.content, typed.word) > 0
        ) as typed
    from (
-- include state
        where o.namespace_id = any(:namespaces::uuid[])
            and
-- include matching
    ) m
    where
-- include visible
-- include unaltered
    order by typed desc, happened desc, m.id
    limit :bound::integer
)
select matched.id, :weight::float8 * (held.words + matched.typed) as score, :weight::float8 * held.words as mass,
    matched.namespace_id, held.bits
-- include happened
from matched
cross join lateral (
    select count(*) as words, bit_or(1::bigint << (asked.place - 1)::integer) as bits
    from unnest(:expressions::text[]) with ordinality as asked (expression, place)
    where matched.search @@ asked.expression::tsquery and asked.place <= 62
) held
order by score desc, matched.happened desc, matched.id
limit :fetch::integer
