-- How the question :text reads in :languages, and how many memories in scope hold each lexeme, counted up to :bound.
select asked.lexeme, (
    select count(*) from (
        select from postings p
        where p.namespace_id = any(:namespaces::uuid[]) and p.lexeme = asked.lexeme
        limit :bound::integer
    ) bounded
) as documents
from (
    select distinct found.lexeme
    from unnest(:languages::text[]) as spoken (language), unnest(folklore_lexemes(spoken.language, :text::text)) as found
) asked
order by documents, asked.lexeme
