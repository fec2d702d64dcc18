-- How many of the :newest latest memories in :namespaces are near-duplicates of an older one, by namespace: of each, the
-- :compared memories before it are compared by their embeddings in :model. So the work is bounded. Pairs that a relation
-- of :settled joins are left out. The latest memories are all in the :newest namespaces that were written to last.
with latest as (
    select n.id, n.name, last.id as memory
    from namespaces n
    cross join lateral (
        select m.id from memories m where m.namespace_id = n.id order by m.id desc limit 1
    ) last
    where n.id = any(:namespaces::uuid[])
    order by last.id desc
    limit :newest::integer
),
newest as materialized (
    select latest.id as namespace_id, latest.name, m.id, m.vector
    from latest
    cross join lateral (
        select m.id, e.vector
        from memories m
        join embeddings e on e.namespace_id = m.namespace_id and e.model_id = :model::uuid and e.memory_id = m.id
            and e.passage = 0
        where m.namespace_id = latest.id and m.trust <> 'derived'
            and m.forgotten_at is null and m.superseded_at is null
            and ({m.ends_at} is null or {m.ends_at} > :now::timestamptz)
        order by m.id desc
        limit :newest::integer
    ) m
    order by m.id desc
    limit :newest::integer
),
near as materialized (
    select newest.namespace_id, newest.name, newest.id, older.memory_id as other
    from newest
    cross join lateral (
        select e.memory_id, e.vector
        from embeddings e
        where e.namespace_id = newest.namespace_id and e.model_id = :model::uuid and e.memory_id < newest.id
            and e.passage = 0
        order by e.memory_id desc
        limit :compared::integer
    ) older
    where (newest.vector <=> older.vector) <= :distance::float8
)
select near.name as namespace, count(distinct near.id) as similar
from near
cross join lateral (
    select m.id
    from memories m
    where m.namespace_id = near.namespace_id and m.id = near.other
        and m.trust <> 'derived' and m.forgotten_at is null and m.superseded_at is null
        and ({m.ends_at} is null or {m.ends_at} > :now::timestamptz)
    limit 1
) older
where not exists (
    select from relations k
    where k.namespace_id = near.namespace_id and k.type = any(:settled::text[])
        and ((k.from_id, k.to_id) = (near.id, near.other) or (k.from_id, k.to_id) = (near.other, near.id))
    offset 0  -- else a plan may read all relations for a hash join
)
group by near.name
