-- The relations of the memories :ids in both directions, strongest first, without those to forgotten memories. Each
-- direction has its own index. Forgotten memories are excluded by a subquery for one value: for not exists() the
-- planner would read all forgotten memories of all namespaces.
select r.namespace_id, r.from_id, r.type, r.to_id, r.strength, r.author, r.created_at
from (
    select f.* from relations f where f.namespace_id = any(:namespaces::uuid[]) and f.from_id = any(:ids::uuid[])
    union
    select t.* from relations t where t.namespace_id = any(:namespaces::uuid[]) and t.to_id = any(:ids::uuid[])
) r
where (
        select m.id from memories m
        where m.namespace_id = r.namespace_id and m.id in (r.from_id, r.to_id)
            and m.forgotten_at is not null and m.id <> all(:ids::uuid[])
        order by m.id
        limit 1
    ) is null
order by r.strength desc, r.type, r.from_id, r.to_id
limit :fetch::integer
