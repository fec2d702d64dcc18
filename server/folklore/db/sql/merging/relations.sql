-- The relations of the memories :ids, which are in :into by now, as are those at their other ends.
insert into relations (namespace_id, from_id, type, to_id, strength, author, created_at)
select :into::uuid, r.from_id, r.type, r.to_id, r.strength, r.author, r.created_at
from (
    select f.* from relations f where f.namespace_id = :namespace::uuid and f.from_id = any(:ids::uuid[])
    union
    select t.* from relations t where t.namespace_id = :namespace::uuid and t.to_id = any(:ids::uuid[])
) r
on conflict (namespace_id, from_id, type, to_id) do nothing
