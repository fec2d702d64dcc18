-- Exact nearest neighbours by cosine distance, :fetch of them, and how the distances lie over the whole scan.
-- The scan reads the narrow table alone; visibility is asked of memories in order of distance, until enough are found.
with scan as materialized (
    select e.namespace_id, e.memory_id, e.vector <=> :query::halfvec as distance
    from embeddings e
    where e.namespace_id = any(:namespaces::uuid[]) and e.model_id = :model::uuid
),
spread as (
    select avg(distance) as mean, stddev_pop(distance) as deviation, count(*) as considered from scan
)
select near.memory_id as id, near.distance, spread.mean, spread.deviation, spread.considered
from (select namespace_id, memory_id, distance from scan order by distance, memory_id) near
join memories m on m.namespace_id = near.namespace_id and m.id = near.memory_id
cross join spread
where m.namespace_id = any(:namespaces::uuid[])
    and
-- include visible
order by near.distance, near.memory_id
limit :fetch::integer
