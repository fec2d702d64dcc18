-- Record the first use of memories of a namespace that a session was given. Rows that another statement has locked are
-- skipped: it records a use too.
with held as materialized (
    select i.memory_id, i.injection_id
    from injections i
    where i.namespace_id = :namespace::uuid and i.memory_id = any(:memories::uuid[])
        and i.caller = :caller::text and i.session = :session::text and i.used_at is null
        and i.injected_at <= :now::timestamptz
    for update skip locked
)
update injections i
set used_at = :now::timestamptz, used = :used::text
from held h
where i.namespace_id = :namespace::uuid and i.memory_id = h.memory_id and i.injection_id = h.injection_id
returning i.memory_id
