-- The commands that give each namespace with at least :threshold embeddings in the active model its HNSW index and
-- remove all other ones; drops come before builds. An invalid index, left by an interrupted build, is dropped and built
-- again, unless it is being built right now. An index stays until its namespace shrinks to half of :threshold, so that
-- a namespace near the threshold does not gain and lose it by turns. A :threshold of 0 drops all. halfvec indexes hold
-- at most 4,000 dimensions.
with existing as (
    select c.relname::text as name, s.nspname as schema, x.indisvalid as valid, exists (
        select from pg_stat_progress_create_index p where p.index_relid = x.indexrelid
    ) as building
    from pg_index x
    join pg_class c on c.oid = x.indexrelid
    join pg_namespace s on s.oid = c.relnamespace
    where x.indrelid = 'embeddings'::regclass and starts_with(c.relname::text, 'embeddings_hnsw_')
), large as (
    select folklore_hnsw(n.id, m.id) as name, n.id as namespace_id, m.id as model_id, m.dimensions, counted.vectors
    from namespaces n
    cross join models m
    cross join lateral (
        select count(*) as vectors
        from (
            select from embeddings e where e.namespace_id = n.id and e.model_id = m.id limit :threshold::integer
        ) bounded
    ) counted
    where n.deleted_at is null and m.role = 'active' and m.dimensions <= 4000
        and :threshold::integer > 0 and 2 * counted.vectors >= :threshold::integer
)
select 'drop' as action, format('drop index concurrently if exists %I.%I', existing.schema, existing.name) as command
from existing
left join large on large.name = existing.name
where (large.name is null or not existing.valid) and not existing.building
union all
select 'build', format(
    'create index concurrently %I on embeddings using hnsw ((vector::halfvec(%s)) halfvec_ip_ops)'
    ' with (m = 16, ef_construction = 64) where namespace_id = %L and model_id = %L',
    large.name, large.dimensions, large.namespace_id, large.model_id)
from large
left join existing on existing.name = large.name
where large.vectors >= :threshold::integer and (existing.name is null or not (existing.valid or existing.building))
order by action desc, command
