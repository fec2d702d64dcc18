-- The lexemes of a query, given as :pieces between white space, in :languages: the numbers of the pieces that each
-- comes from, and the number of memories in scope that contain it, counted up to :bound, with the sum of its scores in
-- those (fragments/evidence) and the sum of score times size. From these sums follows the line of the query's scores
-- over size. :date_terms are those of the query (text/dates/date_terms.py). :mean_length is the mean length of the scope
-- in lexemes; null to look it up. If :measure, the row of the empty lexeme counts all memories in scope, with their
-- mean length, and mean and variance of their size, the logarithm of length + 30.
with word as materialized (
    select piece.place, found.lexeme, position
    from unnest(:pieces::text[]) with ordinality as piece (text, place)
    cross join unnest(:languages::text[]) as spoken (language)
    cross join lateral unnest(folklore_words(spoken.language, piece.text)) as found
    cross join lateral unnest(found.positions) as position
)
select asked.lexeme, asked.stem, asked.places, counted.documents, counted.evidence, counted.sized,
    null::float8 as mean_length, null::float8 as mean_size, null::float8 as size_variance
from (
    select read.lexeme, null::text as stem, array_agg(distinct read.place) as places
    from (
        select word.lexeme, word.place from word
        union all
        select found.lexeme, piece.place
        from unnest(:pieces::text[]) with ordinality as piece (text, place)
        cross join lateral unnest(folklore_compounds(piece.text)) as found
    ) read
    group by read.lexeme
    union all
    select spelled.lexeme, min(word.lexeme), array_agg(distinct spelled.place)
    from (
        select found.lexeme, piece.place, found.positions[1] as position
        from unnest(:pieces::text[]) with ordinality as piece (text, place)
        cross join lateral unnest(folklore_words('pg_catalog.simple', piece.text)) as found
    ) spelled
    join word on word.place = spelled.place and word.position = spelled.position
    group by spelled.lexeme
    having bool_and(word.lexeme <> spelled.lexeme)
    union all
    select term, null, '{}' from unnest(:date_terms::text[]) as term
) asked
cross join lateral (
    select count(*) as documents, sum(bounded.evidence) as evidence,
        sum(bounded.evidence * ln(bounded.length + 30.0::float8)) as sized
    from (
        select p.length,
-- include evidence
            as evidence
        from postings p
        cross join (select :saturation::float8 / greatest(sqrt(coalesce(:mean_length::float8, (
            select avg(length)::float8 from postings where namespace_id = any(:namespaces::uuid[]) and lexeme = ''
        ), 0) ^ 2 + :prior::float8 ^ 2), 1) as damping) usual
        where p.namespace_id = any(:namespaces::uuid[]) and p.lexeme = asked.lexeme
-- include once
        limit :bound::integer
    ) bounded
) counted
union all
select '', null, null, count(*), null, null, avg(length)::float8, avg(ln(length + 30.0::float8)),
    var_pop(ln(length + 30.0::float8))
from postings
where :measure::boolean and namespace_id = any(:namespaces::uuid[]) and lexeme = ''
