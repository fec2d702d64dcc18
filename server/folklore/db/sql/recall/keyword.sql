-- The :fetch memories with the highest weighted sum over the lexemes of a query. :lexemes, :weights (inverse document
-- frequencies) and :stems belong together; a stem is given for a word as it is spelled, else null. The score of a
-- lexeme in a memory is in fragments/evidence. mass is the plain sum of the weights without date terms: how much of the
-- query a memory covers. bits has a bit for each of the first 62 lexemes that a memory contains.
-- :scan limits how many are checked for visibility; null checks all.
with asked as materialized (
    select given.lexeme, given.weight, given.stem,
        case when starts_with(given.lexeme, '@') then 0 else given.weight end as mass,
        case when given.place <= 62 then 1::bigint << (given.place - 1)::integer else 0 end as bit
    from unnest(:lexemes::text[], :weights::float8[], :stems::text[]) with ordinality
        as given (lexeme, weight, stem, place)
)
select ranked.memory_id as id, ranked.score, ranked.mass, ranked.bits
from (
    select held.namespace_id, held.memory_id, sum(asked.mass) as mass, bit_or(asked.bit) as bits,
        sum(asked.weight * held.evidence) as score
    from asked
    cross join lateral (
        select p.namespace_id, p.memory_id,
-- include evidence
            as evidence
        from postings p
        where p.namespace_id = any(:namespaces::uuid[]) and p.lexeme = asked.lexeme
-- include once
    ) held
    group by held.memory_id, held.namespace_id  -- in this order it is quick if they are sorted
    order by score desc, held.memory_id
    limit :scan::integer
) ranked
-- include ranked
