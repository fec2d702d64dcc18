insert into injections (
    namespace_id, memory_id, injection_id, rank, caller, session, event, injected_at, heading, note, tokens, used_at,
    used, dropped_at
)
select :into::uuid, i.memory_id, i.injection_id, i.rank, i.caller, i.session, i.event, i.injected_at, i.heading, i.note,
    i.tokens, i.used_at, i.used, i.dropped_at
from injections i
where i.namespace_id = :namespace::uuid and i.memory_id = any(:ids::uuid[])
