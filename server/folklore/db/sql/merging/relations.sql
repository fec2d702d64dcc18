-- The relations of the memories :ids, which are in :into by now, to memories that are there too.
insert into relations (namespace_id, from_id, type, to_id, strength, author, created_at)
select :into::uuid, r.from_id, r.type, r.to_id, r.strength, r.author, r.created_at
from (
    select f.* from relations f where f.namespace_id = :namespace::uuid and f.from_id = any(:ids::uuid[])
    union
    select t.* from relations t where t.namespace_id = :namespace::uuid and t.to_id = any(:ids::uuid[])
) r
where exists (select from memories f where f.namespace_id = :into::uuid and f.id = r.from_id)
    and exists (select from memories o where o.namespace_id = :into::uuid and o.id = r.to_id)
on conflict (namespace_id, from_id, type, to_id) do nothing
