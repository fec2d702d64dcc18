-- The reflections derived from the memories :ids, whose words they repeat.
select distinct m.id
from relations r
join memories m on m.namespace_id = r.namespace_id and m.id = r.from_id
where r.namespace_id = :namespace::uuid and r.to_id = any(:ids::uuid[]) and r.type = 'derived_from'
    and m.trust = 'derived'
