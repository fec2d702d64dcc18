-- name: close. The cursors of an export: one is open at a time.
close all

-- name: existing. Stored memories that conflict with a batch: by id, by the digest of a live text, by an idempotency
-- key of a request (`requested`). Each lookup uses its own index; one condition with several alternatives would read
-- the whole namespace for every batch.
select m.id, m.digest, null::text as key, m.live_digest is not null as live, false as requested
from memories m where m.namespace_id = :namespace::uuid and m.id = any(:ids::uuid[])
union
select m.id, m.digest, null, m.live_digest is not null, false from memories m
where m.namespace_id = :namespace::uuid and m.live_digest = any(:digests::bytea[])
union
select m.id, m.digest, k.key, m.live_digest is not null, true
from idempotency_keys k
join memories m on m.namespace_id = :namespace::uuid and m.id = k.memory_id
where k.namespace_id = :namespace::uuid and k.key = any(:keys::text[])

-- name: imported. Memories in force that an import of pages of :origin made, with their pages: those named in :below,
-- or in folders named there (none: all). Ids of version 5 follow from their pages; a memory that was stored has
-- another version, whatever its metadata is.
select m.id, m.metadata ->> 'document' as document from memories m
where m.namespace_id = :namespace::uuid
    and m.forgotten_at is null
    and m.superseded_at is null
    and m.metadata ->> 'import' = :origin::text
    and substr(m.id::text, 15, 1) = '5'
    and (cardinality(:below::text[]) = 0 or exists (
        select from unnest(:below::text[]) as named (name)
        where m.metadata ->> 'document' = named.name or starts_with(m.metadata ->> 'document', named.name || '/')
    ))
order by m.id

-- name: insert. Inserts the memories of transfer_columns with their idempotency keys and returns their ids. A memory
-- whose id, live text or idempotency key exists is left out. superseded_by follows in transfer/link_successors, since
-- its target may be imported later. confirmed_at is the time of the import: old memories are not unused on their
-- first day here.
with imported as materialized (
-- include transfer_columns
),
written as (
    insert into memories (
        namespace_id, id, {fields}, position, author, agent, quality, trust, created_at, updated_at, forgotten_at,
        superseded_at, last_recalled_at, recall_count, confirmed_count, confirmed_at, revision, digest,
        changed_by, changed_at
    )
    select :namespace::uuid, d.id, {d.fields},
        case when d.session is null then null else coalesce(d.position, least(coalesce((
            select max(m.position)::bigint + 1 from memories m
            where m.namespace_id = :namespace::uuid and m.session = d.session
        ), 0) + d.step, 2147483647)::integer) end,
        d.author, d.agent, d.quality, d.trust, d.created_at, d.updated_at, d.forgotten_at, d.superseded_at,
        d.last_recalled_at, d.recall_count, d.confirmed_count, :now::timestamptz, d.revision, decode(d.digest, 'hex'),
        d.changed_by, d.changed_at
    from imported d
    where not exists (
        select from idempotency_keys k where k.namespace_id = :namespace::uuid and k.key = d.idempotency_key
    )
    on conflict do nothing returning id
),
keyed as (
    insert into idempotency_keys (namespace_id, key, memory_id, request)
    select :namespace::uuid, d.idempotency_key, d.id, decode(d.digest, 'hex')
    from imported d
    join written on written.id = d.id
    where d.idempotency_key is not null
    order by d.idempotency_key collate "C"
)
select id from written

-- name: insert_keys. :links a JSON array of keys; `request` (hexadecimal) is the digest of the request that the
-- memory answered. A key is written if its memory exists and no other memory has the key. Returns the indexes of all.
with given as materialized (
    select d.* from jsonb_to_recordset(:links::jsonb) as d (index integer, memory_id uuid, key text, request text)
),
written as (
    insert into idempotency_keys (namespace_id, key, memory_id, request)
    select :namespace::uuid, g.key, g.memory_id, decode(g.request, 'hex') from given g
    where g.memory_id = any(array(  -- as changes/update
        select m.id from memories m
        where m.namespace_id = :namespace::uuid and m.id = any(array(select memory_id from given))
    ))
    order by g.key collate "C"
    on conflict (namespace_id, key) do nothing
)
select index from given

-- name: insert_relations. :links a JSON array. Returns the indexes of those whose two memories exist; a relation that
-- exists stays as it is.
with given as materialized (
    select d.* from jsonb_to_recordset(:links::jsonb) as d (
        index integer, from_id uuid, type text, to_id uuid, strength real, author text, created_at timestamptz
    )
    where d.from_id = any(array(select f.id from memories f where f.namespace_id = :namespace::uuid
            and f.id = any(array(select from_id from jsonb_to_recordset(:links::jsonb) as named (from_id uuid)))))
        and d.to_id = any(array(select t.id from memories t where t.namespace_id = :namespace::uuid
            and t.id = any(array(select to_id from jsonb_to_recordset(:links::jsonb) as named (to_id uuid)))))
),
written as (
    insert into relations (namespace_id, from_id, type, to_id, strength, author, created_at)
    select :namespace::uuid, from_id, type, to_id, strength, author, created_at from given
    order by from_id, type collate "C", to_id
    on conflict (namespace_id, from_id, type, to_id) do nothing
)
select index from given

-- name: insert_revisions. :links a JSON array. Returns the indexes of those whose memory exists with a later revision
-- number; a revision that exists stays as it is. A memory with fewer changes than the imported one has no later
-- revisions.
with given as materialized (
    select d.* from jsonb_to_recordset(:links::jsonb) as d (
        index integer, memory_id uuid, revision integer, action text, author text, agent text, changed_at timestamptz,
        reason text, undoes integer, before jsonb
    )
    where exists (select from memories m where m.namespace_id = :namespace::uuid and m.id = d.memory_id
            and m.id = any(array(select memory_id from jsonb_to_recordset(:links::jsonb) as named (memory_id uuid))) and m.revision > d.revision)
),
written as (
    insert into revisions (namespace_id, memory_id, revision, action, author, agent, changed_at, reason, undoes, before)
    select :namespace::uuid, memory_id, revision, action, author, agent, changed_at, reason, undoes, before from given
    order by memory_id, revision
    on conflict (namespace_id, memory_id, revision) do nothing
)
select index from given

-- name: link_successors. :links a JSON array of superseded memories and their successors. Links those whose successor
-- exists, and returns their indexes.
with given as materialized (
    select d.* from jsonb_to_recordset(:links::jsonb) as d (index integer, memory_id uuid, successor_id uuid)
    where d.successor_id = any(array(select t.id from memories t where t.namespace_id = :namespace::uuid
            and t.id = any(array(select successor_id from jsonb_to_recordset(:links::jsonb) as named (successor_id uuid)))))
),
linked as (
    update memories m set superseded_by = given.successor_id
    from given
    where m.namespace_id = :namespace::uuid and m.id = given.memory_id
        and m.id = any(array(select memory_id from given)) and m.superseded_at is not null and m.superseded_by is null
)
select index from given

-- name: memories. The whole memories of one namespace, forgotten and superseded ones too, in an order that every
-- database repeats. :ids only these, null for all. :model whose vectors to read, null for none; a pending embedding
-- is null, and so are passages of a text without any and the vector of no cues. idempotency_key is the first key of a request to store the
-- present text; `keys` are all others, at most as many as a line may have (MAX_KEYS of
-- memory/transfer/json_lines.py).
select
    m.id, {m.fields}, m.position, m.author, m.agent, m.quality, m.trust, m.created_at, m.updated_at, m.forgotten_at,
    m.superseded_at, m.superseded_by, m.last_recalled_at, m.recall_count, m.confirmed_count, m.revision,
    m.changed_by, m.changed_at, own.key as idempotency_key,
    (
        select jsonb_object_agg(k.key, encode(k.request, 'hex'))
        from (
            select k.key, k.request from idempotency_keys k
            where k.namespace_id = :namespace::uuid and k.memory_id = m.id and k.key is distinct from own.key
            order by k.key collate "C" limit 300
        ) k
    ) as keys,
    e.vector, e.cues as vector_of_cues,
    (
        select array_agg(array[p.begins, p.ends] order by p.passage) from embeddings p
        where e.passages > 0 and p.namespace_id = :namespace::uuid and p.model_id = :model::uuid and p.memory_id = m.id
            and p.passage > 0
    ) as ranges,
    (
        select array_agg(p.vector order by p.passage) from embeddings p
        where e.passages > 0 and p.namespace_id = :namespace::uuid and p.model_id = :model::uuid and p.memory_id = m.id
            and p.passage > 0
    ) as passages
from memories m
cross join lateral (
    select min(k.key collate "C") as key from idempotency_keys k
    where k.namespace_id = :namespace::uuid and k.memory_id = m.id and k.request = m.digest
) own
left join embeddings e on e.namespace_id = :namespace::uuid and e.model_id = :model::uuid and e.memory_id = m.id
    and e.passage = 0
where m.namespace_id = :namespace::uuid and (:ids::uuid[] is null or m.id = any(:ids::uuid[]))
order by m.created_at, m.id

-- name: memories_fetch
fetch forward 200 from folklore_memories

-- name: memories_open. A cursor over the memories of one namespace, so that an export needs constant memory.
declare folklore_memories no scroll cursor for
-- include transfer/memories

-- name: namespaces
select id, name, description, language, shared, created_at, created_by from namespaces
where deleted_at is null
    and (:names::text[] is null or lower(name collate "C") in (
        select lower(requested.name collate "C") from unnest(:names::text[]) as requested (name)
    ))

-- name: relations_fetch
fetch forward 200 from folklore_relations

-- name: relations_open. A cursor over the relations of one namespace, in an order that every database repeats.
declare folklore_relations no scroll cursor for
select r.from_id, r.type, r.to_id, r.strength, r.author, r.created_at from relations r
where r.namespace_id = :namespace::uuid
order by r.from_id, r.type collate "C", r.to_id

-- name: replace. Replaces each memory of transfer_columns that exists; its revision increases by one. A memory keeps
-- its idempotency keys and gets the imported one, unless another memory has it.
with imported as materialized (
-- include transfer_columns
),
written as (
    update memories m
    set {d.field_updates},
        position = case when d.session is null then null else coalesce(d.position, least(coalesce((
            select max(s.position)::bigint + 1 from memories s
            where s.namespace_id = :namespace::uuid and s.session = d.session
        ), 0) + d.step, 2147483647)::integer) end,
-- include restated
        quality = d.quality, trust = d.trust, updated_at = :now::timestamptz, forgotten_at = d.forgotten_at,
        superseded_at = d.superseded_at, superseded_by = null, confirmed_count = d.confirmed_count,
        revision = m.revision + 1, digest = decode(d.digest, 'hex'), changed_by = d.changed_by,
        changed_at = d.changed_at
    from imported d
    where m.namespace_id = :namespace::uuid and m.id = d.id and m.id = any(array(select id from imported))
    returning m.id
),
keyed as (
    insert into idempotency_keys (namespace_id, key, memory_id, request)
    select :namespace::uuid, d.idempotency_key, d.id, decode(d.digest, 'hex')
    from imported d
    join written on written.id = d.id
    where d.idempotency_key is not null
    order by d.idempotency_key collate "C"
    on conflict (namespace_id, key) do nothing
)
select id from written

-- name: revisions_fetch
fetch forward 200 from folklore_revisions

-- name: revisions_open. A cursor over the revisions of one namespace, in an order that every database repeats.
declare folklore_revisions no scroll cursor for
select r.memory_id, r.revision, r.action, r.author, r.agent, r.changed_at, r.reason, r.undoes, r.before
from revisions r where r.namespace_id = :namespace::uuid order by r.memory_id, r.revision
