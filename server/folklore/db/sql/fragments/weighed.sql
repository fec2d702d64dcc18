-- The score of a memory `held` (search, length, happened) for :lexemes, each a tsquery, with its weight of :weights and its
-- stem of :stems, where only memories without the stem count (BM25: Robertson and Zaragoza 2009, equation 3.15;
-- :saturation is k1, :flat k1 * (1 - b), and :growth k1 * b / mean length); mass is the sum of the weights without date
-- terms. The frequency comes from ts_rank: the sum of 1 / n^2 over the places of a word, as a share of that over all n,
-- pi^2 / 6, of which 1 / (n + 0.5) is left after n places. Unnesting a tsvector takes twenty times as long.
cross join lateral (
    select sum(asked.weight * (:saturation::float8 + 1) * found.frequency
            / (found.frequency + :flat::float8 + :growth::float8 * held.length)) as score,
        sum(case when starts_with(asked.lexeme, '''@') then 0 else asked.weight end) as mass
    from unnest(:lexemes::text[], :weights::float8[], :stems::text[]) as asked (lexeme, weight, stem)
    cross join lateral (
        select case when starts_with(asked.lexeme, '''@') then (asked.lexeme = any(array(
                select quote_literal('@' || to_char(held.happened at time zone 'UTC', form))
                from unnest(array['YYYY-MM-DD', 'MM-DD', 'YYYY-MM', 'MM', 'YYYY']) as form
            )))::integer
            else round(6 / (pi() ^ 2 * (1 - ts_rank('{1, 0, 1, 1}', held.search, asked.lexeme::tsquery))) - 0.5)
        end as frequency
        offset 0  -- computes it once
    ) found
    where found.frequency > 0 and (asked.stem is null or not held.search @@ asked.stem::tsquery)
) weighed
