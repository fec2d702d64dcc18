-- :links a JSON array. Returns the places of those whose two memories exist; a relation that exists stays as it is.
with given as materialized (
    select d.* from jsonb_to_recordset(:links::jsonb) as d (
        place integer, from_id uuid, type text, to_id uuid, strength real, author text, created_at timestamptz
    )
    where exists (select from memories f where f.namespace_id = :namespace::uuid and f.id = d.from_id)
        and exists (select from memories t where t.namespace_id = :namespace::uuid and t.id = d.to_id)
),
written as (
    insert into relations (namespace_id, from_id, type, to_id, strength, author, created_at)
    select :namespace::uuid, from_id, type, to_id, strength, author, created_at from given
    order by from_id, type collate "C", to_id
    on conflict (namespace_id, from_id, type, to_id) do nothing
)
select place from given
