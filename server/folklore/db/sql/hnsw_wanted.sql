-- What upkeep has to do so that each namespace with at least :threshold vectors in the active model has its HNSW index,
-- and no other is there: commands spelled by Postgres itself, those that drop before those that build. An index that is
-- not valid (its building was cut off) is dropped and built anew; one that somebody is building now is left to him. One
-- whose namespace shrank stays until half of :threshold, so that nothing is built and dropped by turns. A :threshold of
-- 0 wants none. halfvec indexes hold at most 4,000 dimensions, one of them the size.
with held as (
    select c.relname::text as name, s.nspname as schema, x.indisvalid as valid, exists (
        select from pg_stat_progress_create_index p where p.index_relid = x.indexrelid
    ) as in_work
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
            select from embeddings e
            where e.namespace_id = n.id and e.model_id = m.id
            limit :threshold::integer
        ) bounded
    ) counted
    where n.deleted_at is null and m.role = 'active' and m.dimensions < 4000
        and :threshold::integer > 0 and 2 * counted.vectors >= :threshold::integer
)
select 'drop' as action, format('drop index concurrently if exists %I.%I', held.schema, held.name) as command
from held
left join large on large.name = held.name
where (large.name is null or not held.valid) and not held.in_work
union all
select 'build', format(
    'create index concurrently %I on embeddings using hnsw ((folklore_sized(vector, length)::halfvec(%s)) halfvec_ip_ops)'
    ' with (m = 16, ef_construction = 64) where namespace_id = %L and model_id = %L',
    large.name, large.dimensions + 1, large.namespace_id, large.model_id)
from large
left join held on held.name = large.name
where large.vectors >= :threshold::integer and (held.name is null or not (held.valid or held.in_work))
order by action desc, command
