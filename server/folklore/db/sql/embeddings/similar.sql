-- The memories nearest to :ids by their whole texts, at most three for each: among the :newest embeddings of the
-- namespace and, if it holds more, among packed memories that share one of the three rarest words, if at most 20 of them
-- contain the word. So the work is bounded for a namespace of any size: (ids × newest) + (ids × 60) distances. Each
-- memory keeps its nearest three before the lists are joined. If all memories are alike there are as many pairs as
-- distances: joining, sorting and deduplicating those would take a minute, the distances take a second.
with mine as materialized (
    select e.memory_id, e.vector
    from embeddings e
    where e.namespace_id = :namespace::uuid and e.model_id = :model::uuid and e.memory_id = any(:ids::uuid[])
        and e.passage = 0
),
newest as materialized (
    select e.memory_id, e.vector
    from embeddings e
    where e.namespace_id = :namespace::uuid and e.model_id = :model::uuid and e.passage = 0
    order by e.memory_id desc
    limit :newest::integer
),
words as (
    select m.id, folklore_word(found.lexeme) as word
    from memories m, unnest(m.search) as found
    where m.namespace_id = :namespace::uuid and m.id = any(:ids::uuid[]) and not starts_with(found.lexeme, '=')
        and (select count(*) from newest) = :newest::integer
),
counted as (
    select each.word, open.documents, open.entries
    from (select distinct word from words) each
    cross join lateral (
        select p.documents, p.entries
        from postings p
        where p.namespace_id = :namespace::uuid and p.word = each.word and p.block = 0 and p.documents <= 20
        limit 1
    ) open
),
rarest as (
    select words.id, counted.entries, row_number() over (partition by words.id order by documents, words.word) as place
    from words
    join counted on counted.word = words.word
),
older as (
    select distinct rarest.id, (
            select encode(substring(p.ids from entry.number % 256 * 16 + 1 for 16), 'hex')::uuid
            from packed_memories p
            where p.namespace_id = :namespace::uuid and p.block = entry.number / 256
        ) as other
    from rarest
    cross join lateral (
        select ('x' || encode(substring(rarest.entries from place * 8 + 1 for 4), 'hex'))::bit(32)::integer as number
        from generate_series(0, octet_length(rarest.entries) / 8 - 1) as place
    ) entry
    where rarest.place <= 3
),
-- Sorted first, so that only the nearest few are looked up.
nearest as (
    select mine.memory_id, found.id, found.distance
    from mine
    cross join lateral (
        select m.id, sorted.distance
        from (
            select newest.memory_id, mine.vector <=> newest.vector as distance
            from newest
            where newest.memory_id <> mine.memory_id and (mine.vector <=> newest.vector) <= :distance::float8
            order by distance, newest.memory_id
        ) sorted
        cross join lateral (
            select m.id
            from memories m
            where m.namespace_id = :namespace::uuid and m.id = sorted.memory_id
                and m.forgotten_at is null and m.superseded_at is null
                and ({m.ends_at} is null or {m.ends_at} > :now::timestamptz)
            offset 0
        ) m
        order by sorted.distance, sorted.memory_id
        limit 3
    ) found
),
near as (
    select memory_id, id as other, distance from nearest
    union
    select mine.memory_id, e.memory_id, mine.vector <=> e.vector
    from older
    join mine on mine.memory_id = older.id
    join embeddings e on e.namespace_id = :namespace::uuid and e.model_id = :model::uuid and e.memory_id = older.other
        and e.passage = 0
    where older.other <> older.id and (mine.vector <=> e.vector) <= :distance::float8
),
ranked as (
    select near.memory_id, near.distance, m.id, m.content, m.author,
        row_number() over (partition by near.memory_id order by near.distance, m.id) as place
    from near
    join memories m on m.namespace_id = :namespace::uuid and m.id = near.other
    where m.forgotten_at is null and m.superseded_at is null and ({m.ends_at} is null or {m.ends_at} > :now::timestamptz)
)
select memory_id, id, 1 - distance as similarity, content, author
from ranked
where place <= 3
order by memory_id, place
