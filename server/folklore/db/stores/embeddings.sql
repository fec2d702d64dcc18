-- name: backfill. Write the embeddings :vectors in :model of the memories :ids, whose digests were :digests when their
-- texts were read, and their cues, in lines, :phrases: others have their vector made next. A memory that is gone or whose text has changed since is left out and stays pending. The rows are
-- locked: a concurrent change of a text waits, then finds this embedding of the old text and deletes it. Rows that
-- another transaction has locked are skipped and stay pending: stores lock in the order of digests, so waiting here
-- could deadlock. The embeddings are those of embeddings/insert, for which :of names the memories.
with current as materialized (
    select m.id, m.search, array_to_string(m.cues, e'\n') = given.phrases as same_cues
    from unnest(:ids::uuid[], :digests::bytea[], :phrases::text[]) as given (id, digest, phrases)
    join memories m on m.namespace_id = :namespace::uuid and m.id = given.id and m.digest = given.digest
    order by m.id
    for share of m skip locked
)
insert into embeddings (namespace_id, model_id, memory_id, passage, passages, begins, ends, length, vector, cues)
select :namespace::uuid, :model::uuid, current.id, given.passage, given.passages, given.begins, given.ends,
    ceil(folklore_length(current.search) * given.share)::smallint, given.vector,
    case when current.same_cues then given.cues end
from current
join unnest(:of::uuid[], :numbers::smallint[], :passages::smallint[], :begins::smallint[], :ends::smallint[], :shares::real[],
    :vectors::halfvec[], :cues::halfvec[]) as given (id, passage, passages, begins, ends, share, vector, cues) on given.id = current.id
where not exists (
    select from embeddings e
    where e.namespace_id = :namespace::uuid and e.model_id = :model::uuid and e.memory_id = current.id
)
on conflict (namespace_id, model_id, memory_id, passage) do nothing
returning memory_id, passage

-- name: clear_cues. Remove the vectors of the cues of the memories :ids in every model.
update embeddings e set cues = null
where e.namespace_id = :namespace::uuid and e.model_id = any(array(select id from models))
    and e.memory_id = any(:ids::uuid[]) and e.passage = 0 and e.cues is not null

-- name: cues. Write the vectors :vectors of cues in :model for the memories :ids, which had the cues :phrases, in
-- lines, when they were read. A memory whose cues have changed since, or that is locked, is left out and stays pending, as in
-- embeddings/backfill.
with current as materialized (
    select m.id, given.vector
    from unnest(:ids::uuid[], :phrases::text[], :vectors::halfvec[]) as given (id, phrases, vector)
    join memories m on m.namespace_id = :namespace::uuid and m.id = given.id
        and array_to_string(m.cues, e'\n') = given.phrases
    order by m.id
    for share of m skip locked
)
update embeddings e set cues = current.vector
from current
where e.namespace_id = :namespace::uuid and e.model_id = :model::uuid and e.memory_id = current.id and e.passage = 0
returning e.memory_id

-- name: cues_pending. The next :most memories of :namespace after :after, by id, whose cues have no vector in :model
-- although their text has; of :ids if given.
select m.id, m.cues
from memories m
join embeddings e on e.namespace_id = m.namespace_id and e.namespace_id = :namespace::uuid and e.model_id = :model::uuid
    and e.memory_id = m.id and e.passage = 0
where m.namespace_id = :namespace::uuid and m.id > :after::uuid and m.forgotten_at is null
    and m.cues <> '{}' and e.cues is null and (:ids::uuid[] is null or m.id = any(:ids::uuid[]))
order by m.id
limit :most::integer

-- name: coverage. How many memories each namespace of :namespaces holds without the forgotten ones, and how many of
-- them have an embedding in :model. Reads these namespaces whole, and no other: embeddings name them too.
select m.namespace_id as namespace, count(*) as memories, count(e.memory_id) as embedded
from memories m
left join embeddings e on e.namespace_id = m.namespace_id and e.memory_id = m.id
    and e.namespace_id = any(:namespaces::uuid[]) and e.model_id = :model::uuid and e.passage = 0
where m.namespace_id = any(:namespaces::uuid[]) and m.forgotten_at is null
group by m.namespace_id

-- name: delete. Delete at most :most embeddings of a model in one namespace, passages too; run again until it deletes
-- none.
delete from embeddings d
using (
    select e.memory_id, e.passage from embeddings e
    where e.namespace_id = :namespace::uuid and e.model_id = :model::uuid
    order by e.memory_id, e.passage
    limit :most::integer
    for update
) doomed
where d.namespace_id = :namespace::uuid and d.model_id = :model::uuid and d.memory_id = doomed.memory_id
    and d.passage = doomed.passage
returning d.memory_id

-- name: delete_by_id. Delete the embeddings of the memories :ids in every model; see folklore_delete_embeddings.
select folklore_delete_embeddings(:namespace::uuid, :ids::uuid[])

-- name: index_changes. The commands that give the active model its HNSW indexes, of texts and of cues, if it has at
-- least :threshold embeddings, and remove all other indexes; drops come before builds. An invalid index, left by an interrupted build,
-- is dropped and built again, unless it is being built right now. The index stays until half of :threshold is left, so
-- that a model near the threshold does not gain and lose it by turns. A :threshold of 0 drops all. halfvec indexes
-- hold at most 4,000 dimensions. `undo` drops what a failed build leaves; `memory` are the kilobytes for the graph:
-- about what it takes, so that nothing is inserted one by one, and at most as many as Postgres' cache has, or 1 GB.
with existing as (
    select c.relname::text as name, s.nspname as schema, x.indisvalid as valid, exists (
        select from pg_stat_progress_create_index p where p.index_relid = x.indexrelid
    ) as building
    from pg_index x
    join pg_class c on c.oid = x.indexrelid
    join pg_namespace s on s.oid = c.relnamespace
    where x.indrelid = 'embeddings'::regclass and starts_with(c.relname::text, 'embeddings_hnsw_')
), large as (
    select 'embeddings_hnsw_' || part.prefix || replace(m.id::text, '-', '') as name, m.id, m.dimensions, counted.vectors,
        part.vector, part.condition
    from models m
    cross join (values ('', 'vector', ''), ('cues_', 'cues', ' and cues is not null')) as part (prefix, vector, condition)
-- include counted_vectors
    where m.role = 'active' and m.dimensions <= 4000 and :threshold::integer > 0
        and 2 * counted.vectors >= :threshold::integer
)
select 'drop' as action, format('drop index concurrently if exists %I.%I', existing.schema, existing.name) as command,
    'select' as undo, 0 as memory
from existing
left join large on large.name = existing.name
where (large.name is null or not existing.valid) and not existing.building
union all
select 'build', format(
    'create index concurrently %I on embeddings using hnsw ((%s::halfvec(%s)) halfvec_ip_ops)'
    ' with (m = 16, ef_construction = 128) where model_id = %L%s',
    large.name, large.vector, large.dimensions, large.id, large.condition),
    format('drop index concurrently if exists %I', large.name),
    least(greatest(large.vectors, (select c.reltuples from pg_class c where c.oid = 'embeddings'::regclass)::bigint)
        * (2 * large.dimensions + 1000) / 1000, greatest(pg_size_bytes(current_setting('shared_buffers')) / 1000, 1000000))
from large
left join existing on existing.name = large.name
where large.vectors >= :threshold::integer and (existing.name is null or not (existing.valid or existing.building))
order by action desc, command

-- name: insert. Write the embeddings of memories, one for each passage; :ids, :numbers, :passages, :begins, :ends,
-- :shares, :vectors and :cues belong together. A passage has its share of its memory's length. Writes nothing, and returns
-- no row, while :model is not registered.
insert into embeddings (namespace_id, model_id, memory_id, passage, passages, begins, ends, length, vector, cues)
select m.namespace_id, :model::uuid, given.id, given.passage, given.passages, given.begins, given.ends,
    ceil(folklore_length(m.search) * given.share)::smallint, given.vector, given.cues
from unnest(:ids::uuid[], :numbers::smallint[], :passages::smallint[], :begins::smallint[], :ends::smallint[], :shares::real[],
    :vectors::halfvec[], :cues::halfvec[]) as given (id, passage, passages, begins, ends, share, vector, cues)
join memories m on m.namespace_id = :namespace::uuid and m.id = given.id
where exists (select from models where models.id = :model::uuid)
on conflict (namespace_id, model_id, memory_id, passage)
    do update set passages = excluded.passages, begins = excluded.begins, ends = excluded.ends, length = excluded.length,
        vector = excluded.vector, cues = excluded.cues
returning memory_id

-- name: nearest. The :most memories of :namespace whose whole texts' embeddings in :model are nearest to :query,
-- visible or not: the result compares two embedding generations and is shown to no caller.
select memory_id
from embeddings
where namespace_id = :namespace::uuid and model_id = :model::uuid and passage = 0
order by vector <=> :query::halfvec
limit :most::integer

-- name: pending. The next :most memories of :namespace after :after, by id, without an embedding in :model. Forgotten
-- memories need none until they are restored; superseded ones do, since `as_of` still finds them. A text that no
-- embedding can be made of stays pending: a caller that always begins at FIRST reads it forever.
select m.id, m.content, m.digest, m.cues
from memories m
where m.namespace_id = :namespace::uuid and m.id > :after::uuid and m.forgotten_at is null
    and not exists (
        select from embeddings e
        where e.namespace_id = m.namespace_id and e.model_id = :model::uuid and e.memory_id = m.id and e.passage = 0
    )
order by m.id
limit :most::integer

-- name: sample. :most memories of :namespace that have an embedding in both models, spread evenly by a hash of their
-- id and :one, with their text, the same ones at every call.
select m.id, m.content
from memories m
join embeddings a on a.namespace_id = m.namespace_id and a.model_id = :one::uuid and a.memory_id = m.id
    and a.passage = 0
join embeddings b on b.namespace_id = m.namespace_id and b.model_id = :other::uuid and b.memory_id = m.id
    and b.passage = 0
where m.namespace_id = :namespace::uuid and m.forgotten_at is null and m.superseded_at is null
order by md5(m.id::text || :one::uuid::text)
limit :most::integer

-- name: neighbours. The memories in force that are nearest to each of :ids by their whole texts: three down to a cosine of
-- :similar, null for none, and for those of :asked, which are among :ids, :most down to :least. `settled` are those that a
-- relation joins with the memory, but for a contradiction: both hold; :most does not count them. `recent` are those among
-- the :newest.
-- They are looked for among the :newest embeddings of the namespace and, if it holds more, the similar ones also among
-- packed memories that share one of the three rarest words, if at most 20 of them contain the word. So the work is
-- bounded for a namespace of any size: (ids × newest) + (ids × 60) distances. Each memory keeps its nearest ones before
-- the lists are joined. If all memories are alike there are as many pairs as distances: joining, sorting and
-- deduplicating those would take a minute, the distances take a second.
with settled as materialized (
    select r.from_id, r.to_id
    from relations r
    where r.namespace_id = :namespace::uuid and r.from_id = any(:asked::uuid[]) and r.type <> 'contradicts'
    union
    select r.to_id, r.from_id
    from relations r
    where r.namespace_id = :namespace::uuid and r.to_id = any(:asked::uuid[]) and r.type <> 'contradicts'
),
mine as materialized (
    select e.memory_id, e.vector,
        case when e.memory_id = any(:asked::uuid[]) then 1 - :least::float8 else 1 - :similar::float8 end as distance,
        case when e.memory_id = any(:asked::uuid[])
            then :most::integer + (select count(*) from settled where settled.from_id = e.memory_id)
            else 3 end as most
    from embeddings e
    where e.namespace_id = :namespace::uuid and e.model_id = :model::uuid and e.memory_id = any(:ids::uuid[])
        and e.passage = 0
),
-- include newest_vectors
words as (
    select m.id, folklore_word(found.lexeme) as word
    from memories m, unnest(m.search) as found
    where m.namespace_id = :namespace::uuid and m.id = any(:ids::uuid[]) and not starts_with(found.lexeme, '=')
        and :similar::float8 is not null and exists (select from newest offset :newest::integer - 1)
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
    select words.id, counted.entries, row_number() over (partition by words.id order by documents, words.word) as rank
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
        select ('x' || encode(substring(rarest.entries from index * 8 + 1 for 4), 'hex'))::bit(32)::integer as number
        from generate_series(0, octet_length(rarest.entries) / 8 - 1) as index
    ) entry
    where rarest.rank <= 3
),
-- Sorted first, so that only the nearest few are looked up.
nearest as (
    select mine.memory_id, found.id, found.distance
    from mine
    cross join lateral (
        select m.id, sorted.distance
        from (
            select compared.memory_id, compared.distance
            from (
                select newest.memory_id, mine.vector <=> newest.vector as distance
                from newest
                where newest.memory_id <> mine.memory_id
                offset 0  -- computes it once
            ) compared
            where compared.distance <= mine.distance
            order by compared.distance, compared.memory_id
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
        limit mine.most
    ) found
),
-- Kept: where statistics know nothing of the namespace yet, the plan would make it anew for each of its memories.
near as materialized (
    select memory_id, id as other, distance, true as recent from nearest
    union all
    select mine.memory_id, e.memory_id, mine.vector <=> e.vector, false
    from older
    join mine on mine.memory_id = older.id
    join embeddings e on e.namespace_id = :namespace::uuid and e.model_id = :model::uuid and e.memory_id = older.other
        and e.passage = 0
    where older.other <> older.id and (mine.vector <=> e.vector) <= 1 - :similar::float8
        and not exists (select from nearest where nearest.memory_id = mine.memory_id and nearest.id = e.memory_id)
),
ranked as (
    select near.memory_id, near.distance, near.recent, m.id, m.content, m.cues, {m.order_time} as "when", m.author,
        m.changed_by, row_number() over (partition by near.memory_id order by near.distance, m.id) as rank
    from near
    join memories m on m.namespace_id = :namespace::uuid and m.id = near.other
    where m.forgotten_at is null and m.superseded_at is null and ({m.ends_at} is null or {m.ends_at} > :now::timestamptz)
)
select ranked.memory_id, ranked.id, 1 - ranked.distance as cosine, ranked.recent, ranked.content, ranked.cues,
    ranked."when", ranked.author, ranked.changed_by,
    exists (
        select from settled where settled.from_id = ranked.memory_id and settled.to_id = ranked.id
    ) as settled
from ranked
where ranked.recent or ranked.rank <= 3
order by ranked.memory_id, ranked.rank

-- name: update_length. Copy the length of a changed memory to its embeddings in every model. Its text is the same, and
-- so are the lengths of its passages.
update embeddings e set length = folklore_length(m.search)
from memories m
where e.namespace_id = :namespace::uuid and e.model_id = any(array(select id from models))
    and e.memory_id = any(:ids::uuid[]) and e.passage = 0
    and m.namespace_id = :namespace::uuid and m.id = e.memory_id
