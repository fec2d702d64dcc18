-- The forms of the terms :terms of an expression, each for its column in :columns ('' for any), in each of :languages:
-- the lexemes of a form in order with their positions (a gap is a word without a lexeme). A function word has itself
-- after '=' (folklore_words). Where words have two lexemes, with and without accents, there is a form of each. A term
-- that is no plain word has one more form as a whole. Tags and sources are stored as they are spelled, in no language:
-- terms for them are read so, and a term for any column gets that as one more form unless it has function words alone.
-- In that form stems has for each lexeme its stem (itself if a language keeps it; null for a function word).
with term as (
    select given.text, given.field, given.place
    from unnest(:terms::text[], :columns::text[]) with ordinality as given (text, field, place)
),
word as materialized (
    select term.place, spoken.language, found.lexeme, position,
        row_number() over (partition by term.place, spoken.language, position order by found.lexeme) as variant,
        count(*) over (partition by term.place, spoken.language, position) as variants
    from term
    cross join unnest(:languages::text[]) as spoken (language)
    cross join lateral unnest(folklore_words(spoken.language, term.text, spelled => false)) as found
    cross join lateral unnest(found.positions) as position
    where term.field not in ('tag', 'source') and (char_length(found.lexeme) > 1 or ascii(found.lexeme) < 3584)
),
spelled as materialized (
    select term.place, term.field, found.lexeme, position
    from term
    cross join lateral unnest(folklore_words('pg_catalog.simple', term.text)) as found
    cross join lateral unnest(found.positions) as position
),
form as materialized (
    select spelled.place, 'words of ' || spoken.language || ' ' || reading.variant as reading,
        coalesce(word.lexeme, '=' || ltrim(spelled.lexeme, '=')) as lexeme, spelled.position, null as stem
    from spelled
    cross join unnest(:languages::text[]) as spoken (language)
    cross join generate_series(1, 2) as reading (variant)
    left join word on word.place = spelled.place and word.language = spoken.language
        and word.position = spelled.position and word.variant = least(reading.variant, word.variants)
    where spelled.field not in ('tag', 'source')
        and (reading.variant = 1 or exists (
            select from word w where w.place = spelled.place and w.language = spoken.language and w.variants > 1))
    union all
    select place, 'words', lexeme, position, null from spelled where field in ('tag', 'source')
    union all
    select spelled.place, 'spelled', spelled.lexeme, spelled.position,
        case when bool_or(word.lexeme = spelled.lexeme) then spelled.lexeme else min(word.lexeme) end
    from spelled
    left join word on word.place = spelled.place and word.position = spelled.position
    where spelled.field not in ('tag', 'source')
    group by spelled.place, spelled.lexeme, spelled.position
    union all
    select term.place, 'compounds', found.lexeme, position, null
    from term
    cross join lateral unnest(folklore_compounds(term.text)) as found
    cross join lateral unnest(found.positions) as position
)
select form.place, form.reading, array_agg(form.lexeme order by form.position) as lexemes,
    array_agg(form.position order by form.position) as positions,
    case when form.reading = 'spelled' then array_agg(form.stem order by form.position) end as stems
from form
group by form.place, form.reading
order by 1, 2
