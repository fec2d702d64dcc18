-- The :fetch memories in which the lexemes weigh most (BM25: Robertson and Zaragoza 2009, equation 3.15).
-- :lexemes and :weights belong together (weight = inverse document frequency)  :saturation k1  :mean_length and :prior:
-- a memory counts as (length + prior) / (mean length + prior) times as long as others, so that length matters among
-- long texts and hardly among short ones. A lexeme near the beginning counts up to once more: what a text is about it
-- says first. mass is the plain sum of the weights, dates aside: how much of the question a memory covers.
-- :scan bounds how many are asked whether they are visible; null asks about all.
with weighed as materialized (
    select given.lexeme, given.weight,
        case when starts_with(given.lexeme, '@') then 0 else given.weight end as mass
    from unnest(:lexemes::text[], :weights::float8[]) as given (lexeme, weight)
),
scored as materialized (
    select p.namespace_id, p.memory_id, ln(min(p.length) + 30.0::float8) as size, sum(weighed.mass) as mass,
        sum(weighed.weight * p.count * (:saturation::float8 + 1) / (p.count + :saturation::float8
            * (p.length + :prior::float8) / (:mean_length::float8 + :prior::float8))) as score
    from weighed
    cross join lateral (
        select namespace_id, memory_id,
            frequency + exp(greatest(first_position / -10.0::float8, -30)) as count, length
        from postings
        where namespace_id = any(:namespaces::uuid[]) and lexeme = weighed.lexeme
    ) p
    group by p.namespace_id, p.memory_id
),
-- Long texts score higher whatever the question; what is left of a score when the line through all scores of the scope
-- (those without a match are 0) is taken off is what it says. Among few memories one that stands out would bend the line
-- to itself, so the line is trusted by N / (N + 20).
line as materialized (
    select count(*) as considered, sum(score) / :total::float8 as mean_score, (sum(score * size) - sum(score) * :mean_size::float8)
        / greatest(:total::float8 * :size_variance::float8, 1e-9::float8)
        * :total::float8 / (:total::float8 + 20) as slope
    from scored
)
select ranked.memory_id as id, ranked.score, ranked.mass, ranked.considered
from (
    select scored.namespace_id, scored.memory_id, scored.mass, line.considered,
        scored.score - line.mean_score - line.slope * (scored.size - :mean_size::float8) as score
    from scored, line
    order by 5 desc, 2
    limit :scan::integer
) ranked
-- include ranked
