-- The :fetch memories that share the rarest lexemes with the question, any of them, not all.
-- Score = sum over shared lexemes of idf x saturated frequency / length normalisation (the form of BM25; idf and its
-- half counts from Robertson and Sparck Jones 1976).
-- :text the question  :languages the languages it is read in  :total memories in scope  :budget how many postings may be
-- read: lexemes are taken rarest first until it is spent; the rarest is always taken.
-- :saturation k1  :length_weight b
with asked as materialized (
    select distinct found.lexeme
    from unnest(:languages::text[]) as spoken (language), unnest(folklore_lexemes(spoken.language, :text::text)) as found
),
counted as materialized (
    select asked.lexeme, (
        select count(*) from (
            select from postings p
            where p.namespace_id = any(:namespaces::uuid[]) and p.lexeme = asked.lexeme
            limit :budget::integer
        ) bounded
    )::float8 as documents
    from asked
),
weighed as materialized (
    select lexeme, documents,
        ln(1 + greatest(:total::float8 - documents, 0) + 0.5) - ln(documents + 0.5) as idf,
        sum(documents) over (order by documents, lexeme) as read,
        row_number() over (order by documents, lexeme) as place
    from counted
    where documents > 0
),
scored as materialized (
    select p.namespace_id, p.memory_id, min(p.length) as length,
        sum(weighed.idf * p.frequency / (p.frequency + :saturation::float8)) as evidence
    from weighed
    join postings p on p.lexeme = weighed.lexeme
    where p.namespace_id = any(:namespaces::uuid[])
        and (weighed.read <= :budget::integer or weighed.place = 1)
    group by p.namespace_id, p.memory_id
),
typical as (
    select avg(length) as length from scored
),
final as materialized (
    select scored.namespace_id, scored.memory_id,
        scored.evidence / (1 - :length_weight::float8 + :length_weight::float8 * scored.length / typical.length) as score
    from scored, typical
),
spread as (
    select avg(score) as mean, stddev_pop(score) as deviation, count(*) as considered from final
)
select best.memory_id as id, best.score, spread.mean, spread.deviation, spread.considered
from (select namespace_id, memory_id, score from final order by score desc, memory_id) best
join memories m on m.namespace_id = best.namespace_id and m.id = best.memory_id
cross join spread
where m.namespace_id = any(:namespaces::uuid[])
    and
-- include visible
order by best.score desc, best.memory_id
limit :fetch::integer
