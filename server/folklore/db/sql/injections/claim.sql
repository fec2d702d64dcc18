-- Record the notes of one injection, a JSON array, and return those that this session was not given before. Two processes
-- that inject into a session at the same time wait for each other at the unique index, and only one gets a note.
insert into injections (
    namespace_id, memory_id, injection_id, rank, caller, session, event, injected_at, heading, note, tokens
)
select g.namespace, g.memory, :injection::uuid, g.rank, :caller::text, :session::text, :event::text, :now::timestamptz,
    :heading::text, g.note, g.tokens
from jsonb_to_recordset(:notes::jsonb) as g (namespace uuid, memory uuid, rank smallint, note text, tokens smallint)
join memories m on m.namespace_id = g.namespace and m.id = g.memory
order by g.namespace, g.memory
on conflict (namespace_id, caller, session, memory_id) where dropped_at is null do nothing
returning memory_id
