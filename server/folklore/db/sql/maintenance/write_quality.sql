-- Write the quality of memories; :ids, :uses and :qualities belong together. A memory that was used since it was read,
-- or that another transaction has locked, is left to the next run.
with held as materialized (
    select m.id, given.quality
    from unnest(:ids::uuid[], :uses::integer[], :qualities::real[]) as given (id, uses, quality)
    join memories m on m.namespace_id = :namespace::uuid and m.id = given.id
        and m.recall_count + m.confirmed_count = given.uses
    where m.namespace_id = :namespace::uuid
    order by m.id
    for no key update of m skip locked
)
update memories m set quality = held.quality from held
where m.namespace_id = :namespace::uuid and m.id = held.id
returning m.id
