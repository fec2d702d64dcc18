-- :targets[i] superseded :ids[i]. Links the pairs whose target exists, and returns their ids.
with given as materialized (
    select g.id, g.target from unnest(:ids::uuid[], :targets::uuid[]) as g (id, target)
    where exists (select from memories t where t.namespace_id = :namespace::uuid and t.id = g.target)
),
linked as (
    update memories m set superseded_by = given.target
    from given
    where m.namespace_id = :namespace::uuid and m.id = given.id
        and m.superseded_at is not null and m.superseded_by is null
)
select id from given
