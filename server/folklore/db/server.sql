-- name: adopt. Record schema.sql for a database that the last trial version left, whose tables are the same. The time is that
-- from which on namespaces have their present names (namespaces/project).
with former as (
    delete from folklore_migrations returning name, checksum, applied_at
)
insert into folklore_migrations (name, checksum, applied_at)
select 'schema.sql', max(checksum) filter (where name = '0016_no_saved_presets.sql'),
    max(applied_at) filter (where name = '0011_plain_tags.sql')
from former

-- name: analyze
analyze (skip_locked) memories, embeddings, postings, fresh_words, packed_memories, packed_namespaces, revisions, relations,
    idempotency_keys, usage, injections, assistant_sessions

-- name: array_types. Every array type that a statement takes or returns, all null: asyncpg looks up all of them at
-- once.
select :smallints::int2[], :integers::int4[], :bigints::int8[], :reals::real[], :doubles::float8[], :uuids::uuid[],
    :digests::bytea[], :vectors::halfvec[]

-- name: cancel_locked. Cancel the statement of the server process :pid if it waits for a lock.
select pg_cancel_backend(a.pid) as cancelled from pg_stat_activity a
where a.pid = :pid::integer and a.application_name = 'folklore' and a.wait_event_type = 'Lock'

-- name: info
select version() as version, current_setting('server_version_num')::integer / 10000 as major,
    (select extversion from pg_extension where extname = 'vector') as pgvector,
    (select default_version from pg_available_extensions where name = 'vector') as offered,
    current_database() as database, current_user as role,
    pg_database_size(current_database()) as bytes

-- name: migrations. The names of what was applied, the newest last.
select name, checksum from folklore_migrations order by name <> 'schema.sql', name

-- name: record_migration
insert into folklore_migrations (name, checksum, applied_at) values (:name::text, :checksum::text, :now::timestamptz)

-- name: requirements. What a database must be: has_letters is whether a Cyrillic letter is one for the text search, and
-- has a lower case. It is made by its number: a text with it has no form in other encodings.
select current_setting('server_encoding') as encoding,
    format('alter role %I in database %I', session_user, current_database()) as of_role,
    (select coalesce(to_jsonb(d) ->> 'datlocale', to_jsonb(d) ->> 'daticulocale', d.datctype) from pg_database d
        where d.datname = current_database()) as locale,
    to_tsvector('pg_catalog.simple', made.letter) <> '' and lower(made.letter) <> made.letter as has_letters,
    current_setting('standard_conforming_strings') as standard_conforming_strings,
    current_setting('row_security') as row_security
from (select chr(case current_setting('server_encoding') when 'UTF8' then 1046 else 65 end) as letter) made

-- name: shards. The shard of each of :namespaces, on a cluster.
select given.id, get_shard_id_for_distribution_column('memories', given.id)
from unnest(:namespaces::uuid[]) as given (id)

-- name: vector_schema. The schema of the extension pgvector, and whether tables are distributed; no row without it.
select n.nspname as schema, to_regclass('pg_dist_partition') is not null as distributed from pg_extension e join pg_namespace n on n.oid = e.extnamespace where e.extname = 'vector'
