-- The :fetch memories in which the lexemes weigh most: sum of weight x saturated frequency, by length.
-- :lexemes and :weights belong together (weight = inverse document frequency)  :prior tokens that every memory is longer
-- by, so that length counts among long texts and hardly among short ones.
-- total, squares and considered say how scores lie over everything that matched; known_ids and known_scores are the
-- :known best of it, visible or not, for candidates that another branch proposed.
with weighed as materialized (
    select given.lexeme, given.weight
    from unnest(:lexemes::text[], :weights::float8[]) as given (lexeme, weight)
),
scored as materialized (
    select p.namespace_id, p.memory_id,
        sum(weighed.weight * (2.0::float8 * p.frequency / (p.frequency + 1.0::float8)))
            / (min(p.length) + :prior::float8) as score
    from weighed
    cross join lateral (
        select namespace_id, memory_id, frequency, length
        from postings
        where namespace_id = any(:namespaces::uuid[]) and lexeme = weighed.lexeme
    ) p
    group by p.namespace_id, p.memory_id
),
spread as materialized (
    select sum(score) as total, sum(score * score) as squares, count(*) as considered from scored
),
known as materialized (
    select array_agg(memory_id) as ids, array_agg(score) as scores
    from (select memory_id, score from scored order by score desc, memory_id limit :known::integer) best
)
select best.memory_id as id, best.score, spread.total, spread.squares, spread.considered,
    known.ids as known_ids, known.scores as known_scores
from (
    select ranked.memory_id, ranked.score
    from (select namespace_id, memory_id, score from scored order by score desc, memory_id) ranked
    cross join lateral (
        select from memories m
        where m.namespace_id = ranked.namespace_id and m.id = ranked.memory_id
            and
-- include visible
        limit 1  -- keeps the planner from joining all of memories first
    ) seen
    order by ranked.score desc, ranked.memory_id
    limit :fetch::integer
) best
cross join spread
cross join known
order by best.score desc, best.memory_id
