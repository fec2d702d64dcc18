-- The words of cues in one pass: a fifth of the time. A question is read in the language of the memory too, so words of
-- another language are found as they are spelled.

create or replace function folklore_cues(language text, cues text[]) returns tsvector
language sql immutable parallel safe
return coalesce((
    select array_to_tsvector(array_agg(distinct '~' || found.lexeme))
    from unnest(folklore_words(language, array_to_string(cues, ' . '), spelled => false)
        || folklore_compounds(array_to_string(cues, ' . '))
        || folklore_joined(language, array_to_string(cues, ' . '))) as found
), '');
