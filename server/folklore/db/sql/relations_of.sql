-- What the memories :ids have to do with others that are not forgotten, in both directions, strongest first.
select r.namespace_id, r.from_id, r.type, r.to_id, r.strength, r.author, r.created_at
from relations r
where r.namespace_id = any(:namespaces::uuid[])
    and (r.from_id = any(:ids::uuid[]) or r.to_id = any(:ids::uuid[]))
    and not exists (
        select from memories m
        where m.namespace_id = r.namespace_id and m.id in (r.from_id, r.to_id)
            and m.forgotten_at is not null and m.id <> all(:ids::uuid[])
    )
order by r.strength desc, r.type, r.from_id, r.to_id
limit :fetch::integer
