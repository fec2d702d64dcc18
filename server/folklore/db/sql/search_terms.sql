-- How each of the terms :terms of an expression reads in each of :languages: the lexemes of a form in order with their
-- places (a jump is a word without a lexeme) and how many memories in scope hold each, counted up to :bound. A term
-- that is no plain word has one more form, kept whole. Place 0 tells how many memories there are and their mean length.
with form as (
    select term.place, 'words of ' || spoken.language as reading, found.lexeme, position
    from unnest(:terms::text[]) with ordinality as term (text, place)
    cross join unnest(:languages::text[]) as spoken (language)
    cross join unnest(folklore_words(spoken.language, term.text)) as found
    cross join unnest(found.positions) as position
    union all
    select term.place, 'compounds', found.lexeme, position
    from unnest(:terms::text[]) with ordinality as term (text, place)
    cross join unnest(folklore_compounds(term.text)) as found
    cross join unnest(found.positions) as position
),
counted as (
    select lexeme, (
        select count(*) from (
            select from postings p
            where p.namespace_id = any(:namespaces::uuid[]) and p.lexeme = asked.lexeme
            limit :bound::integer
        ) bounded
    ) as documents
    from (select distinct lexeme from form) asked
)
select form.place, form.reading, array_agg(form.lexeme order by form.position) as lexemes,
    array_agg(form.position order by form.position) as positions,
    array_agg(counted.documents::float8 order by form.position) as documents
from form
join counted on counted.lexeme = form.lexeme
group by form.place, form.reading
union all
select 0, '', null, null, array[count(*), coalesce(avg(length), 0)]::float8[]
from postings
where namespace_id = any(:namespaces::uuid[]) and lexeme = ''
order by 1, 2
