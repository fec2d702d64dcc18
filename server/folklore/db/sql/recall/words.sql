-- The words of a question in scope, one row. Its :pieces between white space are analysed in :languages: each lexeme with
-- its kind, piece, position, and language if it is of one. Of these, and of :lexemes, the postings: the kept number of
-- documents among packed memories and, of the rarest words until :budget postings are spent, the entries, with the
-- namespaces that have any, and how many. Then all words of fresh memories, and the number and the summed length of the packed ones. One statement is
-- one moment: a memory is packed or fresh.
with
-- include left_out
piece as materialized (
    select given.text, given.place::integer from unnest(:pieces::text[]) with ordinality as given (text, place)
),
analysed as materialized (
    select 'word' as kind, piece.place, position::integer, spoken.language, found.lexeme
    from piece
    cross join unnest(:languages::text[]) as spoken (language)
    cross join lateral unnest(folklore_words(spoken.language, piece.text, spelled => false)) as found
    cross join lateral unnest(found.positions) as position
    where char_length(found.lexeme) > 1 or ascii(found.lexeme) < 3584  -- single characters of scripts without spaces
    union all
    select 'spelled', piece.place, position::integer, '', found.lexeme
    from piece
    cross join lateral unnest(folklore_words('pg_catalog.simple', piece.text, spelled => false)) as found
    cross join lateral unnest(found.positions) as position
    union all
    select 'compound', piece.place, 0, '', found.lexeme
    from piece
    cross join lateral unnest(folklore_compounds(piece.text)) as found
),
counted as materialized (
    select p.word, sum(p.documents) as documents
    from postings p
    where p.word = any(array(
            select folklore_word(lexeme) from (select lexeme from analysed union select unnest(:lexemes::text[])) named
        )) and p.namespace_id = any(:namespaces::uuid[]) and p.block = 0
    group by p.word
),
rarest as materialized (
    select spent.word
    from (select counted.*, sum(documents) over (order by documents, word) as postings from counted) spent
    where spent.postings <= :budget::integer or spent.postings = spent.documents
),
listed as materialized (
    select o.namespace_id, o.word, case when 8 * o.documents <= octet_length(o.entries) then o.entries else (
            select string_agg(p.entries, '')
            from postings p
            where p.namespace_id = o.namespace_id and p.word = o.word
        ) end as entries
    from postings o
    where o.word = any(array(select word from rarest)) and o.namespace_id = any(:namespaces::uuid[]) and o.block = 0
)
select a.*, c.*, p.*, f.*, n.*
from (
    select array_agg(kind) as kinds, array_agg(place) as places, array_agg(position) as positions,
        array_agg(language) as languages, array_agg(lexeme) as lexemes
    from analysed
) a
cross join (select array_agg(word) as words, array_agg(documents) as documents from counted) c
cross join (
    select array_agg(word) as rare, array_agg(spaces) as spaces, array_agg(counts) as counts, array_agg(entries) as entries
    from (
        select word, string_agg(uuid_send(namespace_id), '') as spaces,
            string_agg(int4send(octet_length(entries) / 8), '') as counts, string_agg(entries, '') as entries
        from listed
        group by word
    ) of_word
) p
cross join (
    select string_agg(uuid_send(namespace_id), '') as fresh_spaces, string_agg(uuid_send(memory_id), '') as fresh_ids,
        string_agg(int2send(length), '') as fresh_lengths, string_agg(int4send(octet_length(words) / 4), '') as fresh_counts,
        string_agg(words, '') as fresh_words, string_agg(frequencies, '') as fresh_frequencies
    from fresh_words where namespace_id = any(:namespaces::uuid[])
) f
cross join (
    select coalesce(sum(n.documents), 0) as total, coalesce(sum(n.length), 0) as length
    from packed_namespaces n
    where n.namespace_id = any(:namespaces::uuid[])
) n
