-- name: count_expired
select count(*) as count from memories m
where m.namespace_id = :namespace::uuid and m.expires_at <= :now::timestamptz
    and {m.ends_at} <= :now::timestamptz and m.forgotten_at is null

-- name: count_forgotten
select count(*) as count from memories m
where m.namespace_id = :namespace::uuid and m.forgotten_at < :before::timestamptz

-- name: forget_expired. Forget up to :batch expired memories, each with a revision. Recall has hidden them since they
-- expired (visible).
with expired as materialized (
    select m.namespace_id, m.id, m.revision from memories m
    where m.namespace_id = :namespace::uuid and m.expires_at <= :now::timestamptz
        and {m.ends_at} <= :now::timestamptz and m.forgotten_at is null
    order by m.id limit :batch::integer
    for update skip locked
),
kept as (
    insert into revisions (namespace_id, memory_id, revision, action, author, changed_at, before)
    select :namespace::uuid, expired.id, expired.revision, 'expire', 'folklore', :now::timestamptz,
        '{"forgotten_at": null}'
    from expired
)
update memories m
set forgotten_at = :now::timestamptz, updated_at = :now::timestamptz, revision = m.revision + 1
from expired where m.namespace_id = :namespace::uuid and m.id = expired.id returning m.id

-- name: lock_forgotten. Up to :batch memories forgotten before :before, locked so that no caller restores them
-- meanwhile.
select m.id from memories m
where m.namespace_id = :namespace::uuid and m.forgotten_at < :before::timestamptz
order by m.id limit :batch::integer
for update skip locked

-- name: sizes. The tables of this schema with the planner's estimate of their rows (none before the first ANALYZE),
-- and their sizes; the size of the database.
select c.relname::text as name, nullif(c.reltuples, -1)::bigint as rows, pg_table_size(c.oid) as table_bytes,
    pg_indexes_size(c.oid) as index_bytes, pg_database_size(current_database()) as database_bytes
from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind = 'r'
order by pg_total_relation_size(c.oid) desc, c.relname

-- name: used_memories. Memories after :after, by id, that were recalled or confirmed at least once, with what their
-- quality follows from.
select m.id, m.kind, m.importance, m.quality, m.recall_count as recalls, m.confirmed_count as confirmations,
    greatest(m.updated_at, m.last_recalled_at, m.confirmed_at) as used_at
from memories m
where m.namespace_id = :namespace::uuid and m.id > :after::uuid and m.forgotten_at is null
    and m.superseded_at is null and (m.recall_count > 0 or m.confirmed_count > 0)
order by m.id limit :batch::integer

-- name: write_quality. Write the quality of memories; :ids, :uses and :qualities belong together. A memory that was
-- used since it was read, or that another transaction has locked, is left to the next run.
with held as materialized (
    select m.id, given.quality
    from unnest(:ids::uuid[], :uses::integer[], :qualities::real[]) as given (id, uses, quality)
    join memories m on m.namespace_id = :namespace::uuid and m.id = given.id
        and m.recall_count + m.confirmed_count = given.uses
    where m.namespace_id = :namespace::uuid
    order by m.id
    for no key update of m skip locked
)
update memories m set quality = held.quality from held
where m.namespace_id = :namespace::uuid and m.id = held.id returning m.id
