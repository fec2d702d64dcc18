-- Mark what a session was given from a namespace as dropped, since its client has compacted it.
update injections i
set dropped_at = :now::timestamptz
where i.namespace_id = :namespace::uuid and i.caller = :caller::text and i.session = :session::text
    and i.dropped_at is null
returning i.memory_id
