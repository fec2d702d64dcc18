-- The pairs among :ids that a relation of :types joins, in both directions.
select r.from_id, r.to_id
from relations r
where r.namespace_id = :namespace::uuid and r.type = any(:types::text[])
    and r.from_id = any(:ids::uuid[]) and r.to_id = any(:ids::uuid[])
