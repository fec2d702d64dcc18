-- name: doubts. The reasons for which the tables cannot be distributed yet.
select 'The cluster has no worker, or its coordinator is no node: docs/how-to/citus.md has the steps before.' as doubt
where 2 > (select count(distinct groupid > 0) from pg_dist_node where isactive)
union all
select 'The tables are not there yet: run `folklore db migrate`.' where to_regclass('memories') is null
union all
select format('Node %s:%s cannot reach %s:%s; passwords are read from .pgpass.', n.from_node, n.from_port, n.to_node, n.to_port)
from citus_check_cluster_node_health() as n (from_node, from_port, to_node, to_port, reached) where n.reached is not true
union all
select format('%s connections of Folklore are open: stop its servers first.', count(*)) from pg_stat_activity a
where a.datname = current_database() and a.application_name = 'folklore' and a.pid <> pg_backend_pid()
having count(*) > 0 and to_regclass('memories') not in (select logicalrelid from pg_dist_partition)

-- name: settings. The settings of both roles. Settings of a transaction reach the workers by the first: without it, row-level
-- security returns no row, and no error. By the second, policies may read grants there. The others are those of searches.
select format('alter role %I set %s = %L', r.rolname, needed.name, needed.value) as command
from pg_roles r
cross join (
    values ('citus.propagate_set_commands', 'local'), ('citus.allow_nested_distributed_execution', 'on'),
        ('hnsw.ef_search', '400'), ('hnsw.iterative_scan', 'relaxed_order'), ('hnsw.max_scan_tuples', '5000')
) needed (name, value)
where r.rolname in (current_user, 'folklore_app') and not exists (
    select from pg_db_role_setting s
    where s.setrole = r.oid and s.setdatabase = 0 and needed.name || '=' || needed.value = any(s.setconfig)
)
order by r.rolname, needed.name

-- name: functions. Every function again, so that it is on the workers, after those that it calls: a migration may have given an
-- older function a body that calls a newer one. One that reads a table becomes text: as a parsed body
-- it would depend on the table, whose policies depend on it. One that deletes runs as its caller, since a worker would run it
-- in the role for tokens; distribute/grants has what it needs.
with recursive ours as (
    select p.oid, p.proname, p.prokind, n.nspname
    from pg_proc p
    join pg_namespace n on n.oid = p.pronamespace
    where n.nspname = current_schema() and starts_with(p.proname, 'folklore_')
), calls as (
    select d.objid as caller, d.refobjid as called
    from pg_depend d
    join ours caller on caller.oid = d.objid
    join ours called on called.oid = d.refobjid
    where d.classid = 'pg_proc'::regclass and d.refclassid = 'pg_proc'::regclass and d.objid <> d.refobjid
), levels as (
    select oid, 0 as level from ours
    union
    select c.caller, l.level + 1 from levels l join calls c on c.called = l.oid
)
select regexp_replace(case when reads.table then regexp_replace(regexp_replace(pg_get_functiondef(p.oid),
        '\nRETURN (.*)\n$', format(e'\nset search_path = %I, pg_temp as $body$ select \\1 $body$', p.nspname)),
        '\nBEGIN ATOMIC\n(.*)\nEND\n$', format(e'\nset search_path = %I, pg_temp as $body$ \\1 $body$', p.nspname))
    else pg_get_functiondef(p.oid) end, case when p.prokind = 'f' and p.proname ~ '_(delete|release)_' then ' SECURITY DEFINER' else '^$' end, '') as command
from ours p
cross join lateral (
    select exists (
        select from pg_depend d
        where d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.refclassid = 'pg_class'::regclass
    ) as table
) reads
order by (select max(l.level) from levels l where l.oid = p.oid), p.oid

-- name: tokens. How a transaction of a token says so to the workers. Citus sends each SET LOCAL to them as a text, which
-- their logs may have. So the key stays a setting of the coordinator (set_config), and the workers get a proof, which is
-- good for a day: the id of the token, the time in seconds, and a digest of that time and of the digest that is stored.
select format($command$
create or replace function folklore_proof(key text) returns text
language sql stable security definer set search_path = %I, pg_temp as $body$
    select concat_ws(' ', t.id, made.at, encode(sha256(t.digest || convert_to(made.at, 'UTF8')), 'hex'))
    from tokens t
    cross join (select extract(epoch from transaction_timestamp())::bigint::text as at) made
    where t.digest = sha256(case when key ~ '^[0-9a-f]{64}$' then decode(key, 'hex') end)
$body$ $command$, current_schema()) as command
union all
select $command$
create or replace function folklore_enter(key text) returns void
language plpgsql as $body$
begin
    set local role folklore_app;
    perform set_config('folklore.key', key, true);
    execute format('set local folklore.proof = %L', coalesce(folklore_proof(key), ''));
end
$body$ $command$
union all
select format($command$
create or replace function folklore_token() returns uuid
language sql stable parallel safe security definer set search_path = %I, pg_temp as $body$
    select t.id
    from (
        select current_setting('folklore.key', true) as key,
            regexp_match(current_setting('folklore.proof', true), '^([0-9a-f-]{36}) ([0-9]{1,12}) ([0-9a-f]{64})$') as proof
    ) given
    join tokens t on t.digest = sha256(case when given.key ~ '^[0-9a-f]{64}$' then decode(given.key, 'hex') end)
        or t.id = given.proof[1]::uuid
            and given.proof[3] = encode(sha256(t.digest || convert_to(given.proof[2], 'UTF8')), 'hex')
            and abs(extract(epoch from transaction_timestamp()) - given.proof[2]::bigint) < 86400
    where t.revoked_at is null and (t.expires_at is null or t.expires_at > transaction_timestamp())
$body$ $command$, current_schema())
union all
-- Milliseconds: a policy calls it once for a scan by an index, and for each row in a scan of a whole shard.
select 'alter function folklore_opened(text[]) cost 100000'

-- name: nodes. The nodes of the cluster that do not answer, in Postgres' own words: `node` is their number in pg_dist_node.
select n.nodeid as node, n.nodename || ':' || n.nodeport as address, current_user::text as role, answered.result as reason
from run_command_on_all_nodes('select 1', true, false) as answered (node, success, result)
join pg_dist_node n on n.nodeid = answered.node
where not answered.success
order by n.nodeid

-- name: namespaces_on. The namespaces whose rows are on the nodes :nodes.
select n.id
from namespaces n
join pg_dist_placement p on p.shardid = get_shard_id_for_distribution_column('memories', n.id)
join pg_dist_node d on d.groupid = p.groupid
where d.nodeid = any(:nodes::integer[])

-- name: every_shard. It reads from each shard of memories.
select count(*) from memories

-- name: count_nodes
select count(*) from pg_dist_node where isactive

-- name: policies. Every policy without its subqueries: Citus allows none. The function is then called once for a scan, as part of
-- the condition of an index.
select format('alter policy %I on %s', p.polname, p.polrelid::regclass) || string_agg(
    format(' %s (%s)', part.word, regexp_replace(regexp_replace(regexp_replace(part.condition,
        'IN \( SELECT unnest\((folklore_\w+\(\))\) AS unnest\)', '= any (\1)', 'g'),
        '\( SELECT (folklore_principal\(\)) AS folklore_principal\)', '\1', 'g'),
        'EXISTS \( SELECT\s+FROM unnest\(\( SELECT folklore_prefixes\((''[^'']*''::text\[\])\) .*?'
            'WHERE folklore_begins\(namespaces.name, p.prefix\)\)', 'folklore_named(name, \1)', 'g')),
    '' order by part.word) as command
from pg_policy p
cross join lateral (
    values ('using', pg_get_expr(p.polqual, p.polrelid)), ('with check', pg_get_expr(p.polwithcheck, p.polrelid))
) part (word, condition)
where p.polrelid::regclass::text in (select t.tablename from pg_tables t where t.schemaname = current_schema())
    and part.condition is not null
group by p.polrelid, p.polname
order by p.polrelid::regclass::text, p.polname

-- name: grants. What the role for tokens needs for statements that functions of their owner run elsewhere.
select needed.command
from (
    values ('memories', 'delete', 'folklore_opened(''{admin}'')'), ('embeddings', 'delete', 'folklore_writable()'),
        ('fresh_words', 'delete', 'folklore_writable()'), ('relations', 'delete', 'folklore_writable()'),
        ('idempotency_keys', 'delete', 'folklore_writable()'), ('packed_memories', 'update', 'folklore_writable()'),
        ('packed_namespaces', 'update', 'folklore_writable()'), ('packed_namespaces', 'insert', 'folklore_writable()')
) given (name, privilege, spaces)
cross join lateral (
    values (1, format('create policy %s_%s on %1$s for %2$s %4$s (namespace_id = any(%3$s))', name, privilege, spaces,
            case privilege when 'insert' then 'with check' else 'using' end)),
        (2, format('grant %s on %s to folklore_app', privilege, name))
) needed (number, command)
where needed.number = 2 or format('%s_%s', given.name, given.privilege) not in (select p.polname from pg_policy p)
union all
select 'grant update (probe) on models to folklore_app'
union all
select format('grant folklore_app to %I', current_user)

-- name: keys. Foreign keys of the tables that are not distributed, with the commands that drop them and create them again.
select format('alter table %s drop constraint %I', k.conrelid::regclass, k.conname) as drop,
    format('alter table %s add constraint %I %s', k.conrelid::regclass, k.conname, pg_get_constraintdef(k.oid)) as command
from pg_constraint k
where k.contype = 'f' and k.connamespace = current_schema()::regnamespace
    and k.conrelid not in (select logicalrelid from pg_dist_partition)
union all
select format('drop index %s', x.indexrelid::regclass), null from pg_index x  -- the job `indexes` builds it again
where x.indrelid = 'embeddings'::regclass and starts_with(x.indexrelid::regclass::text, 'embeddings_hnsw_')
order by 1

-- name: tables. The tables that are not distributed: small ones become reference tables, those that keys refer to last, since a
-- write locks its table and then those, in this order. The others, by their namespaces, get the shards of memories.
select case when t.data
        then format('select create_distributed_table(%L, %L, %s)', t.name, 'namespace_id', case t.name
            when 'memories' then $$shard_count => 32, colocate_with => 'none'$$ else $$colocate_with => 'memories'$$ end)
        else format('select create_reference_table(%L)', t.name) end as command
from (
    select c.oid, c.relname::text as name, a.attname = 'namespace_id' as data
    from pg_class c
    join pg_index x on x.indrelid = c.oid and x.indisprimary
    join pg_attribute a on a.attrelid = c.oid and a.attnum = x.indkey[0]
    where c.relnamespace = current_schema()::regnamespace and c.relkind = 'r' and c.relname <> 'folklore_migrations'
) t
where t.oid not in (select logicalrelid from pg_dist_partition)
order by t.data, t.name <> 'memories', exists (select from pg_constraint k where k.contype = 'f' and k.confrelid = t.oid),
    not exists (select from pg_constraint k where k.contype = 'f' and k.conrelid = t.oid), t.name

-- name: placed. The nodes and the size of each table; `placement` is null for one on the coordinator alone.
select c.relname::text as name, case when d.partmethod is not null then format('%s on %s nodes, %s', case d.partmethod when 'h' then count(distinct s.shardid) || ' shards' else 'whole' end,
            count(distinct (s.nodename, s.nodeport)), pg_size_pretty(coalesce(sum(s.shard_size), 0))) end as placement
from pg_class c
left join pg_dist_partition d on d.logicalrelid = c.oid
left join citus_shards s on s.table_name = c.oid
where c.relnamespace = current_schema()::regnamespace and c.relkind = 'r' and c.relname <> 'folklore_migrations'
group by c.relname, d.partmethod
order by coalesce(sum(s.shard_size), 0) desc, c.relname
