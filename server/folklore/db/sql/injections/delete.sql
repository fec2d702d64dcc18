with old as materialized (
    select i.memory_id, i.injection_id
    from injections i
    where i.namespace_id = :namespace::uuid and i.injected_at < :before::timestamptz
    order by i.injected_at
    limit :batch::integer
    for update skip locked
)
delete from injections i
using old
where i.namespace_id = :namespace::uuid and i.memory_id = old.memory_id and i.injection_id = old.injection_id
returning i.memory_id
