-- name: all_databases. The databases but the templates, and but those whose names are :scratch and 8 hexadecimal
-- digits.
select d.datname as name from pg_database d
where not d.datistemplate and d.datallowconn
    and not (starts_with(d.datname, :scratch::text) and substr(d.datname, length(:scratch::text) + 1) ~ '^[0-9a-f]{8}$')
order by d.datname

-- name: answers. Questions made of words of some memories, chosen by a hash of their ids, and the memories that hold
-- all words of each: the same in every copy of a database. By words and not by rank, since sums of scores depend on
-- the order of rows.
select asked.question::text as question,
    array(
        select m.id::text from memories m where m.search @@ asked.question order by m.id, m.namespace_id limit 100
    ) as ids
from (
    select (
            select string_agg('''' || replace(replace(word, '\', '\\'), '''', '''''') || '''', ' & ' order by word)
            from (select unnest(tsvector_to_array(m.search)) as word limit :words::integer) first
        )::tsquery as question
    from (select * from memories order by md5(id::text), namespace_id limit :questions::integer) m
) asked
where asked.question is not null

-- name: content. The rows of {table}, and a digest that does not depend on their order: the sum of the hashes of
-- their {columns}.
select count(*) as rows, coalesce(sum(('x' || left(md5(row({columns})::text), 15))::bit(60)::bigint), 0)::text as digest
from {table} r

-- name: create_database. The command that creates an empty database with the locale of this one; {name} is filled in
-- by the caller.
select format(
    'create database {name} template template0 encoding %L locale_provider %s lc_collate %L lc_ctype %L%s',
    pg_encoding_to_char(d.encoding),
    case d.datlocprovider when 'i' then 'icu' when 'b' then 'builtin' else 'libc' end,
    d.datcollate, d.datctype,
    case d.datlocprovider
        when 'i' then format(' icu_locale %L', coalesce(to_jsonb(d) ->> 'datlocale', to_jsonb(d) ->> 'daticulocale'))
        when 'b' then format(' builtin_locale %L', to_jsonb(d) ->> 'datlocale')
        else ''
    end) as command
from pg_database d where d.datname = current_database()

-- name: databases. The databases whose names are :beginning and 8 hexadecimal digits.
select d.datname as name from pg_database d
where starts_with(d.datname, :beginning::text)
    and substr(d.datname, length(:beginning::text) + 1) ~ '^[0-9a-f]{8}$'
order by d.datname

-- name: drop_database. The command that drops a database and ends its sessions.
select format('drop database if exists %I with (force)', :name::text) as command

-- name: end_sessions. End every other session in these databases.
select count(pg_terminate_backend(a.pid)) as ended from pg_stat_activity a
where a.datname = any (:names::text[]) and a.pid <> pg_backend_pid()

-- name: has_schema. Whether migrations were applied to this database.
select to_regclass('folklore_migrations') is not null as has_schema

-- name: is_cluster. Whether the tables are distributed over a cluster.
select exists (select from pg_extension where extname = 'citus') as is_cluster

-- name: model. The active embedding model.
select provider || '/' || name || '/' || dimensions as model from models where role = 'active'

-- name: own_settings. The commands that make the settings of `alter system` on another server.
select s.name, format('alter system set %I = %L', s.name, s.setting) as command from pg_file_settings s
where s.sourcefile ~ '/postgresql\.auto\.conf$'
order by s.seqno

-- name: rename_database. The command that gives a database another name.
select format('alter database %I rename to %I', :old::text, :new::text) as command

-- name: roles. Every role but Postgres' own with its properties, memberships and settings, as one text each. Reads as
-- a superuser.
select jsonb_build_array(
    r.rolname, r.rolsuper, r.rolinherit, r.rolcreaterole, r.rolcreatedb, r.rolcanlogin, r.rolreplication, r.rolbypassrls,
    r.rolconnlimit, r.rolpassword, r.rolvaliduntil,
    (select jsonb_agg(g.rolname order by g.rolname) from pg_auth_members m join pg_roles g on g.oid = m.roleid
        where m.member = r.oid),
    (select s.setconfig from pg_db_role_setting s where s.setrole = r.oid and s.setdatabase = 0))::text as role
from pg_authid r where r.rolname !~ '^pg_' order by r.rolname

-- name: snapshot. The name by which other connections can read this transaction's moment of the database.
select pg_export_snapshot() as snapshot

-- name: tables. Every table with its schema, those of extensions left out, and its columns but the generated ones,
-- which a restore computes anew; all names as they are written in a statement.
select format('%I.%I', n.nspname, c.relname) as name, columns.names as columns
from pg_class c
join pg_namespace n on n.oid = c.relnamespace
cross join lateral (
    select string_agg(format('r.%I', a.attname), ', ' order by a.attnum) as names from pg_attribute a
    where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
) columns
where c.relkind in ('r', 'p') and not c.relispartition and columns.names is not null
    and n.nspname <> 'information_schema' and n.nspname !~ '^pg_'
    and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')
order by name

-- name: token_role. The command that creates the role for tokens, which a dump's privileges name; none if it exists.
select 'create role folklore_app login' as command
where not exists (select from pg_roles where rolname = 'folklore_app')
