-- The :fetch memories in which the lexemes weigh most. :lexemes and :weights belong together (weight = inverse document
-- frequency); how much one says in a memory is in evidence.sql. mass is the plain sum of the weights, dates aside: how
-- much of the question a memory covers.
-- Long texts score higher whatever the question; what is left of a score when the line through all scores of the scope
-- (:mean_score and :score_slope over size; recall_lexemes.sql has what it is made of) is taken off is what it says.
-- :scan bounds how many are asked whether they are visible; null asks about all.
with weighed as materialized (
    select given.lexeme, given.weight,
        case when starts_with(given.lexeme, '@') then 0 else given.weight end as mass
    from unnest(:lexemes::text[], :weights::float8[]) as given (lexeme, weight)
)
select ranked.memory_id as id, ranked.score, ranked.mass
from (
    select held.namespace_id, held.memory_id, sum(weighed.mass) as mass,
        sum(weighed.weight * held.evidence) - :mean_score::float8
            - :score_slope::float8 * (ln(min(held.length) + 30.0::float8) - :mean_size::float8) as score
    from weighed
    cross join lateral (
        select p.namespace_id, p.memory_id, p.length,
-- include evidence
            as evidence
        from postings p
        cross join (select :damping::float8 as damping) usual
        where p.namespace_id = any(:namespaces::uuid[]) and p.lexeme = weighed.lexeme
    ) held
    group by held.namespace_id, held.memory_id
    order by score desc, held.memory_id
    limit :scan::integer
) ranked
-- include ranked
