-- name: created. The number of namespaces that :author created since a time, deleted ones too.
select count(*) as created from namespaces where created_by = :author::text and created_at > :since::timestamptz

-- name: delete
update namespaces set deleted_at = :now::timestamptz, deleted_by = :author::text
where id = :namespace::uuid and deleted_at is null returning id

-- name: deleted
select id, name, deleted_at, deleted_by from namespaces
where lower(name collate "C") = lower(:name::text collate "C") and deleted_at is not null
order by deleted_at desc, id

-- name: deleted_before
select id from namespaces where deleted_at < :before::timestamptz order by id

-- name: describe
update namespaces set description = :description::text where id = :namespace::uuid and deleted_at is null returning id

-- name: ensure. Create a namespace if its name is new, else add the languages of its new memories; those that were
-- :detected are not added to a namespace without a language ('simple'). Returns the row; none if it was deleted
-- meanwhile. The namespace is locked in shared mode, which excludes changes of memories (namespaces/lock) and nothing
-- else. It is an advisory lock: on a cluster, a lock on a row of a small table excludes those on all other rows.
select made.id, made.language, coalesce((select n.name from namespaces n where n.id = made.id), :name::text) as name
from folklore_ensure(:id::uuid, :name::text, :language::text, :languages::text[], :detected::text[], :now::timestamptz,
    :author::text) as made

-- name: hold. Lock the row of a namespace until the transaction ends, so that none restores it meanwhile.
select deleted_at from namespaces where id = :namespace::uuid for update

-- name: erase. Delete the row of a namespace, after all rows that belong to it.
delete from namespaces where id = :namespace::uuid

-- name: erase_audit
delete from audit where namespace_id = :namespace::uuid

-- name: erase_memories. Delete the memories of a namespace; embeddings, relations, revisions, keys, usage and
-- injections are deleted by foreign keys.
delete from memories where namespace_id = :namespace::uuid

-- name: erase_postings. Delete the postings of a namespace, which no foreign key deletes.
with fresh as (
    delete from fresh_words where namespace_id = :namespace::uuid
), packed as (
    delete from packed_memories where namespace_id = :namespace::uuid
), counted as (
    delete from packed_namespaces where namespace_id = :namespace::uuid
)
delete from postings where namespace_id = :namespace::uuid

-- name: erase_sessions. Delete the assistants' sessions of a namespace, which no foreign key deletes.
delete from assistant_sessions where namespace_id = :namespace::uuid

-- name: project. The namespace with the memory of a project: that of its :name, else that of :former, the name that an
-- earlier version gave it: for one that a folder names (:folder) any, else one that is older than the present names.
select n.name from namespaces n
where n.deleted_at is null and (
    lower(n.name collate "C") = lower(:name::text collate "C")
    or lower(n.name collate "C") = lower(:former::text collate "C") and (
        :folder::boolean
        or n.created_at < (select m.applied_at from folklore_migrations m where m.name = 'schema.sql')
    )
)
order by lower(n.name collate "C") = lower(:name::text collate "C") desc limit 1

-- name: find. The namespaces of :names (null: all) within :within (null: all), each with its languages, the id of the
-- active embedding model, `empty`: recall leaves empty ones out, `shared`: recall asks those in every project, and a hash
-- of all rows. Where that is :known, and each of :hollow is still empty, one row has it alone.
-- This statement begins every recall. A subquery for one row in the order of the key uses the index. For exists() the
-- planner may prefer a sequential scan, which it expects to end at the first row, and which reads all memories for
-- each empty namespace.
with found as not materialized (
    select n.id, n.name, n.languages, (select id from models where role = 'active') as model, n.shared = 'always' as shared
    from namespaces n
    where n.deleted_at is null and (:within::uuid[] is null or n.id = any(:within::uuid[]))
        and (:names::text[] is null or lower(n.name collate "C") in (
            select lower(name collate "C") from unnest(:names::text[]) as asked (name)
        ))
)
select n.id, n.name, n.languages,
-- include empty
    as empty, n.model, n.shared, hashed.state
from (
    select bit_xor(uuid_hash_extended(id, hashtextextended(name, hash_array_extended(languages,
        uuid_hash_extended(coalesce(model, id), shared::integer))))) as state from found  -- a record takes five times as long
) hashed
left join found n on :known::bigint is null or hashed.state is distinct from :known::bigint or not (
    select coalesce(bool_and(
-- include empty
    ), true)
    from unnest(:hollow::uuid[]) as n (id)
)

-- name: insert. Creates a namespace with given properties; one that exists stays as it is and is not returned.
insert into namespaces (id, name, description, language, languages, shared, created_at, created_by)
values (:id::uuid, :name::text, :description::text, :language::text, array[:language::text], :shared::text,
    :created_at::timestamptz, :created_by::text)
on conflict do nothing returning id

-- name: list. Every namespace, or with :deleted every deleted one, within :within (null: all). Memories are counted
-- up to 50,000, an order of magnitude, without the forgotten ones, as everywhere.
select n.id, n.name, n.description, n.language, n.languages, n.shared, n.created_at, n.deleted_at, n.deleted_by,
    (select count(*) from (
        select from memories m where m.namespace_id = n.id and m.forgotten_at is null limit 50000
    ) bounded) as memories
from namespaces n
where (n.deleted_at is not null) = :deleted::boolean
    and (:within::uuid[] is null or n.id = any(:within::uuid[]))
order by n.name

-- name: lock. Lock a namespace exclusively for changes of its memories, until the transaction ends; a store shares the
-- lock (namespaces/ensure). So changes never wait for each other in a circle, in whatever order they touch rows.
select locked.id, locked.deleted_at from folklore_lock(:namespace::uuid) as locked

-- name: lock_by_name. Lock a namespace as namespaces/lock does, for a store that also supersedes or relates. It must
-- come before namespaces/ensure: two transactions that both share a lock could only upgrade it by a deadlock.
select locked.id from folklore_lock((
    select id from namespaces where lower(name collate "C") = lower(:name::text collate "C") and deleted_at is null
)) as locked

-- name: lock_sessions. Let one store at a time number the memories of this namespace's sessions.
select pg_advisory_xact_lock(hashtextextended(:namespace::uuid::text, 1))

-- name: rename. Rename a namespace. A name in use violates namespaces_name_key.
update namespaces set name = :name::text where id = :namespace::uuid and deleted_at is null returning id

-- name: restore. Restore a deleted namespace. A name in use by now violates namespaces_name_key.
update namespaces set deleted_at = null, deleted_by = null
where id = :namespace::uuid and deleted_at is not null returning id

-- name: share
update namespaces set shared = :shared::text where id = :namespace::uuid and deleted_at is null returning id

-- name: stats. Exact counts of the namespaces :namespaces; without_vector counts the memories without an embedding in
-- :model. Both data tables name the namespaces themselves: joined alone, they would be read whole.
select n.name, count(m.id) filter (where m.forgotten_at is null) as memories,
    count(m.id) filter (where m.forgotten_at is not null) as forgotten,
    count(m.id) filter (where m.superseded_at is not null) as superseded,
    count(m.id) filter (where m.forgotten_at is null and e.memory_id is null) as without_vector,
    count(distinct m.session) as sessions,
    min(m.created_at) as oldest, max(m.created_at) as newest,
    coalesce(sum(length(m.content)), 0)::bigint as characters
from namespaces n
left join memories m on m.namespace_id = n.id and m.namespace_id = any(:namespaces::uuid[])
left join embeddings e on e.namespace_id = m.namespace_id and e.memory_id = m.id
    and e.namespace_id = any(:namespaces::uuid[]) and e.model_id = :model::uuid and e.passage = 0
where n.id = any(:namespaces::uuid[])
group by n.id, n.name
order by n.name

-- name: status. How many memories each namespace within :within (null: all) holds, and how many of those have no
-- embedding in :model, counted up to 50,000.
select n.name, n.shared,
    (select count(*) from (
        select from memories m where m.namespace_id = n.id and m.forgotten_at is null limit 50000
    ) bounded) as memories
-- include without_vector
from namespaces n where n.deleted_at is null and (:within::uuid[] is null or n.id = any(:within::uuid[]))
order by n.name
