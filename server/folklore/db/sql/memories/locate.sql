-- The namespaces, among :namespaces, that hold each of the memories :ids; :unforgotten leaves out forgotten memories.
select m.namespace_id, m.id
from memories m
where m.namespace_id = any(:namespaces::uuid[]) and m.id = any(:ids::uuid[])
    and (not :unforgotten::boolean or m.forgotten_at is null)
order by m.id, m.namespace_id
