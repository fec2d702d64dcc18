-- name: begin. Lock the packed part of a namespace, create it if it is missing, and return the number of the next memory.
insert into packed_namespaces (namespace_id, documents, length, next, dead)
values (:namespace::uuid, 0, 0, 0, 0)
on conflict (namespace_id) do update set next = packed_namespaces.next
returning next

-- name: clean. Delete the entries of removed memories from the next :most words after :after of a namespace, whose
-- packed part is locked; return the last of these words, null after the last.
with removed as materialized (
    select p.block * 256 + index as number
    from packed_memories p
    cross join lateral generate_series(0, octet_length(p.ids) / 16 - 1) as index
    where p.namespace_id = :namespace::uuid and substring(p.ids from index * 16 + 1 for 16) = decode(repeat('00', 16), 'hex')
),
part as materialized (
    select p.word
    from postings p
    where p.namespace_id = :namespace::uuid and p.block = 0 and p.word > :after::bigint
    order by p.word
    limit :most::integer
),
left_over as materialized (
    select held.word, held.block, sum(count(removed.number)) over (partition by held.word)::integer as dead,
        coalesce(string_agg(held.entry, '' order by held.number) filter (where removed.number is null), '') as entries
    from (
        select p.word, p.block, entry, ('x' || encode(substring(entry for 4), 'hex'))::bit(32)::integer as number
        from part
        join postings p on p.namespace_id = :namespace::uuid and p.word = part.word
        cross join lateral (select 8 - 4 * (p.word & 1) as bytes) each
        left join lateral generate_series(0, octet_length(p.entries) / each.bytes - 1) as index on true
        left join lateral substring(p.entries from index * each.bytes + 1 for each.bytes) as entry on true
    ) held
    left join removed on removed.number = held.number
    group by held.word, held.block
),
written as (
    update postings p
    set entries = l.entries, documents = case when p.block = 0 then p.documents - l.dead else 0 end
    from left_over l
    where p.namespace_id = :namespace::uuid and p.word = l.word and p.block = l.block and l.dead > 0
)
select max(part.word) as last from part

-- name: cleaned. Delete the words and blocks without entries, and record that those of :dead memories were deleted.
with emptied as (
    delete from postings where namespace_id = :namespace::uuid and documents = 0 and entries = ''
)
update packed_namespaces set dead = dead - :dead::integer where namespace_id = :namespace::uuid

-- name: delete. Delete the postings of the memories :ids; see folklore_delete_postings.
select folklore_delete_postings(:namespace::uuid, :ids::uuid[])

-- name: due. The namespaces with fresh memories, counted up to :most, or many dead entries: a tenth of the packed
-- memories were removed. Those with the most fresh ones first. `pages` are those of the table of fresh words.
select n.id as namespace, counted.fresh, coalesce(packed.dead, 0) as dead,
    (select pg_relation_size('fresh_words') / current_setting('block_size')::integer) as pages
from namespaces n
cross join lateral (
    select count(*) as fresh from (select from fresh_words f where f.namespace_id = n.id limit :most::integer) bounded
) counted
left join lateral (
    select p.dead from packed_namespaces p where p.namespace_id = n.id and p.dead > 0 and 9 * p.dead >= p.documents limit 1
) packed on true
where counted.fresh > 0 or packed.dead > 0
order by counted.fresh desc, n.id

-- name: insert. Write the words of the memories :ids: their generated tsvector as hashes with frequencies. Lexemes of the source alone
-- are left out: the source is searched by its own filter and does not describe what a memory is about. So are words as
-- they are spelled, after '=' (folklore_words), which the tsvector alone serves. Words of cues have hashes of their own
-- (folklore_cues) and do not count in the length.
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
where m.namespace_id = :namespace::uuid and m.id = any(:ids::uuid[])
order by m.id

-- name: pack. Pack the :most oldest fresh memories of a namespace, from the number :next on; its packed part is locked. Entries are
-- appended to the open block of their word; what fills one becomes a block under its first number plus one. Rows that a
-- change has locked stay fresh: it deletes them, and waiting for it could deadlock.
with taken as materialized (
    select f.memory_id, f.length, f.words, f.frequencies
    from fresh_words f
    where f.namespace_id = :namespace::uuid
    order by f.memory_id
    limit :most::integer
    for update skip locked
),
gone as (
    delete from fresh_words f using taken where f.namespace_id = :namespace::uuid and f.memory_id = taken.memory_id
),
numbered as materialized (
    select taken.*, :next::integer + row_number() over (order by taken.memory_id)::integer - 1 as number from taken
),
added as (
    select ('x' || encode(named.word, 'hex'))::bit(32)::integer as word, named.documents, named.entries
    from (
        select substring(numbered.words from 4 * index + 1 for 4) as word, count(*)::integer as documents,
            string_agg(int4send(numbered.number) || case
                when get_byte(numbered.words, 4 * index + 3) & 1 = 0
                then substring(numbered.frequencies from 2 * index + 1 for 2) || int2send(numbered.length)
                else '' end, '' order by numbered.number) as entries
        from numbered
        cross join lateral generate_series(0, octet_length(numbered.words) / 4 - 1) as index
        group by substring(numbered.words from 4 * index + 1 for 4)
    ) named
),
appended as materialized (
    select added.word, coalesce(held.documents, 0) + added.documents as documents,
        coalesce(held.entries, '') || added.entries as entries
    from added
    left join lateral (
        select p.documents, p.entries
        from postings p
        where p.namespace_id = :namespace::uuid and p.word = added.word and p.block = 0
        limit 1
    ) held on true
),
filled as (
    insert into postings (namespace_id, word, block, documents, entries)
    select :namespace::uuid, cut.word, ('x' || encode(substring(cut.entries for 4), 'hex'))::bit(32)::integer + 1, 0, cut.entries
    from (
        select appended.word, substring(appended.entries from index * 2000 + 1 for 2000) as entries
        from appended
        cross join lateral generate_series(0, octet_length(appended.entries) / 2000 - 1) as index
    ) cut
),
opened as (
    insert into postings (namespace_id, word, block, documents, entries)
    select :namespace::uuid, appended.word, 0, appended.documents,
        substring(appended.entries from octet_length(appended.entries) / 2000 * 2000 + 1)
    from appended
    order by appended.word
    on conflict (namespace_id, word, block) do update set documents = excluded.documents, entries = excluded.entries
),
listed as (
    insert into packed_memories as p (namespace_id, block, first_id, last_id, ids, lengths)
    select :namespace::uuid, numbered.number / 256, (array_agg(numbered.memory_id order by numbered.number))[1],
        (array_agg(numbered.memory_id order by numbered.number desc))[1],
        string_agg(uuid_send(numbered.memory_id), '' order by numbered.number),
        string_agg(int2send(numbered.length), '' order by numbered.number)
    from numbered
    group by numbered.number / 256
    on conflict (namespace_id, block) do update set first_id = least(p.first_id, excluded.first_id),
        last_id = greatest(p.last_id, excluded.last_id), ids = p.ids || excluded.ids, lengths = p.lengths || excluded.lengths
)
update packed_namespaces p
set documents = p.documents + counted.documents, length = p.length + counted.length, next = p.next + counted.documents
from (select count(*)::integer as documents, coalesce(sum(numbered.length), 0) as length from numbered) counted
where p.namespace_id = :namespace::uuid
returning counted.documents
