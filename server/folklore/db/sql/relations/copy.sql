-- Copy the relations of the memories :ids to the memory :to, in its place; not those between :ids and :to, and not
-- those that say what superseded what. A relation that exists stays as it is.
insert into relations (namespace_id, from_id, type, to_id, strength, author, created_at)
select :namespace::uuid, copied.from_id, copied.type, copied.to_id, max(copied.strength), :author::text,
    :now::timestamptz
from (
    select case when r.from_id = any(:ids::uuid[]) then :to::uuid else r.from_id end as from_id, r.type,
        case when r.to_id = any(:ids::uuid[]) then :to::uuid else r.to_id end as to_id, r.strength
    from (
        select f.* from relations f where f.namespace_id = :namespace::uuid and f.from_id = any(:ids::uuid[])
        union
        select t.* from relations t where t.namespace_id = :namespace::uuid and t.to_id = any(:ids::uuid[])
    ) r
    where r.type <> 'supersedes'
) copied
where copied.from_id <> copied.to_id
group by copied.from_id, copied.type, copied.to_id
order by copied.from_id, copied.type collate "C", copied.to_id
on conflict (namespace_id, from_id, type, to_id) do nothing
returning from_id, type, to_id
