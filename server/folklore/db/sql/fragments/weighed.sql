-- The score of a memory `held` (search, length, happened) for :lexemes, each with its weight of :weights and its stem of
-- :stems, where only memories without the stem count (BM25: Robertson and Zaragoza 2009, equation 3.15; :saturation is k1,
-- :flat k1 * (1 - b), and :growth k1 * b / mean length); mass is the sum of the weights without date terms.
cross join lateral (
    select sum(asked.weight * (:saturation::float8 + 1) * p.frequency
            / (p.frequency + :flat::float8 + :growth::float8 * held.length)) as score,
        sum(case when starts_with(asked.lexeme, '@') then 0 else asked.weight end) as mass
    from (
        select found.lexeme, cardinality(array_remove(found.weights, 'C')) as frequency from unnest(held.search) as found
        union all
        select '@' || to_char(held.happened at time zone 'UTC', form), 1
        from unnest(array['YYYY-MM-DD', 'MM-DD', 'YYYY-MM', 'MM', 'YYYY']) as form
    ) p
    join unnest(:lexemes::text[], :weights::float8[], :stems::text[]) as asked (lexeme, weight, stem)
        on asked.lexeme = p.lexeme
    where p.frequency > 0 and (asked.stem is null or not asked.stem = any(tsvector_to_array(held.search)))
) weighed
