-- The commands that give the active model its HNSW index, if it has at least :threshold embeddings, and remove all other
-- indexes; drops come before builds. An invalid index, left by an interrupted build, is dropped and built again, unless
-- it is being built right now. The index stays until half of :threshold is left, so that a model near the threshold does
-- not gain and lose it by turns. A :threshold of 0 drops all. halfvec indexes hold at most 4,000 dimensions. `undo` drops
-- what a failed build leaves; `memory` are the kilobytes for the graph: about what it takes, so that nothing is inserted
-- one by one, and at most as many as Postgres' cache has, or 1 GB.
with existing as (
    select c.relname::text as name, s.nspname as schema, x.indisvalid as valid, exists (
        select from pg_stat_progress_create_index p where p.index_relid = x.indexrelid
    ) as building
    from pg_index x
    join pg_class c on c.oid = x.indexrelid
    join pg_namespace s on s.oid = c.relnamespace
    where x.indrelid = 'embeddings'::regclass and starts_with(c.relname::text, 'embeddings_hnsw_')
), large as (
    select 'embeddings_hnsw_' || replace(m.id::text, '-', '') as name, m.id, m.dimensions, counted.vectors
    from models m
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
    'create index concurrently %I on embeddings using hnsw ((vector::halfvec(%s)) halfvec_ip_ops)'
    ' with (m = 16, ef_construction = 128) where model_id = %L', large.name, large.dimensions, large.id),
    format('drop index concurrently if exists %I', large.name),
    least(greatest(large.vectors, (select c.reltuples from pg_class c where c.oid = 'embeddings'::regclass)::bigint)
        * (2 * large.dimensions + 1000) / 1000, greatest(pg_size_bytes(current_setting('shared_buffers')) / 1000, 1000000))
from large
left join existing on existing.name = large.name
where large.vectors >= :threshold::integer and (existing.name is null or not (existing.valid or existing.building))
order by action desc, command
