-- Record the notes of one injection from one namespace, a JSON array, and return those that this session was not given
-- before; those that are not whole may be given again. Two processes that inject into a session at the same time wait for each other at the unique index, and only
-- one of them gets a note.
insert into injections (
    namespace_id, memory_id, injection_id, rank, caller, session, event, injected_at, heading, note, tokens,
    dropped_at
)
select m.namespace_id, m.id, :injection::uuid, g.rank, :caller::text, :session::text, :event::text, :now::timestamptz,
    :heading::text, g.note, g.tokens, case when not g.whole then :now::timestamptz end
from jsonb_to_recordset(:notes::jsonb) as g (memory uuid, rank smallint, note text, tokens smallint, whole boolean)
join memories m on m.namespace_id = :namespace::uuid and m.id = g.memory
order by m.id
on conflict (namespace_id, caller, session, memory_id) where dropped_at is null do nothing
returning memory_id
