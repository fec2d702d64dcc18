-- The word of a lexeme in cues follows that of the lexeme, so that both are found by one hash, and its postings have the
-- numbers of memories alone. All words are made anew.

create or replace function folklore_word(lexeme text) returns integer
language sql immutable parallel safe
return (('x' || encode(substring(sha256(convert_to(ltrim(lexeme, '~'), 'UTF8')) for 4), 'hex'))::bit(32)::integer & -2)
    | starts_with(lexeme, '~')::integer;

truncate fresh_words, postings, packed_memories, packed_namespaces;
-- A namespace at a time: a cluster sends this whole to the node of one.
do $$
declare
    space uuid;
begin
    for space in select id from namespaces loop
        insert into fresh_words (namespace_id, memory_id, length, words, frequencies)
        select m.namespace_id, m.id, folklore_length(m.search), named.words, named.frequencies
        from memories m
        cross join lateral (
            select string_agg(int4send(word), '') as words, string_agg(int2send(frequency), '') as frequencies
            from (
                select word, frequency from folklore_named_words(m.search, coalesce(m.occurred_at, m.created_at))
                union all
                select folklore_word(cue.lexeme), 1::smallint
                from unnest(folklore_cues(m.language, m.cues)) as cue
                where m.cues <> '{}'
            ) held
        ) named
        where m.namespace_id = space;
    end loop;
end
$$;
