-- The lexemes of a query, given as :pieces between white space, in :languages: the numbers of the pieces that each
-- comes from, and the number of memories in scope that contain it, counted up to :bound. A word may have several lexemes: of each language, with and without accents, and as it is spelled, which is
-- how tags are kept. The one that most memories contain is its stem; the others have it in `stem`, and the memories
-- without it are counted. A piece that has function words alone in some languages has a row for each word as it is
-- spelled, after '=', with these languages in function_in. :date_terms are those of the query
-- (text/dates/date_terms.py). If :measure, the row of the empty lexeme counts all memories in scope, with their mean length.
with piece as materialized (
    select given.text, given.place from unnest(:pieces::text[]) with ordinality as given (text, place)
),
word as materialized (
    select piece.place, spoken.language, found.lexeme, position
    from piece
    cross join unnest(:languages::text[]) as spoken (language)
    cross join lateral unnest(folklore_words(spoken.language, piece.text, spelled => false)) as found
    cross join lateral unnest(found.positions) as position
    where char_length(found.lexeme) > 1 or ascii(found.lexeme) < 3584  -- single characters of scripts without spaces
),
spelled as materialized (
    select piece.place, found.lexeme, position
    from piece
    cross join lateral unnest(folklore_words('pg_catalog.simple', piece.text, spelled => false)) as found
    cross join lateral unnest(found.positions) as position
),
compound as materialized (
    select piece.place, found.lexeme from piece cross join lateral unnest(folklore_compounds(piece.text)) as found
),
stem as materialized (
    select word.place, word.position, (array_agg(word.lexeme order by case when cardinality(:languages::text[]) > 1 then (
            select count(*) from (
                select from postings p
                where p.namespace_id = any(:namespaces::uuid[]) and p.lexeme = word.lexeme
                limit 100
            ) bounded
        ) end desc, word.lexeme))[1] as lexeme
    from word
    group by word.place, word.position
)
select asked.lexeme, asked.stem, asked.places, asked.function_in, counted.documents, null::float8 as mean_length
from (
    select read.lexeme, null::text as stem, array_agg(distinct read.place) as places, null::text[] as function_in
    from (select lexeme, place from stem union all select lexeme, place from compound) read
    group by read.lexeme
    union all
    select other.lexeme, min(stem.lexeme), array_agg(distinct other.place), null
    from (select place, position, lexeme from word union all select place, position, lexeme from spelled) other
    join stem on stem.place = other.place and stem.position = other.position
    group by other.lexeme
    having bool_and(stem.lexeme <> other.lexeme)
    union all
    select '=' || spelled.lexeme, null, array[spelled.place], array_agg(distinct spoken.language)
    from spelled
    cross join unnest(:languages::text[]) as spoken (language)
    where not exists (select from word where word.place = spelled.place and word.language = spoken.language)
        and spelled.place not in (select place from compound)
    group by spelled.lexeme, spelled.place
    union all
    select term, null, '{}', null from unnest(:date_terms::text[]) as term
) asked
cross join lateral (
    select count(*) as documents
    from (
        select from postings p
        where asked.function_in is null and p.namespace_id = any(:namespaces::uuid[]) and p.lexeme = asked.lexeme
-- include once
        limit :bound::integer
    ) bounded
) counted
union all
select '', null, null, null, count(*), avg(length)::float8
from postings
where :measure::boolean and namespace_id = any(:namespaces::uuid[]) and lexeme = ''
