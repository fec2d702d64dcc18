-- :links a JSON array of superseded memories and their successors. Links those whose successor exists, and returns their
-- places.
with given as materialized (
    select d.* from jsonb_to_recordset(:links::jsonb) as d (place integer, memory_id uuid, successor_id uuid)
    where exists (select from memories t where t.namespace_id = :namespace::uuid and t.id = d.successor_id)
),
linked as (
    update memories m set superseded_by = given.successor_id
    from given
    where m.namespace_id = :namespace::uuid and m.id = given.memory_id
        and m.superseded_at is not null and m.superseded_by is null
)
select place from given
