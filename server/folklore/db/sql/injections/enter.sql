-- Record that an assistant's session works in a project, and, with :decided, that something was decided now. In a session
-- that is known, a call without a decision locks and writes nothing.
insert into assistant_sessions as s (namespace_id, caller, session, started_at, decided_at)
select :namespace::uuid, :caller::text, :session::text, :now::timestamptz,
    case when :decided::boolean then :now::timestamptz end
where :decided::boolean or not exists (
    select from assistant_sessions known
    where known.namespace_id = :namespace::uuid and known.caller = :caller::text and known.session = :session::text
)
on conflict (namespace_id, caller, session) do update set decided_at = excluded.decided_at
where excluded.decided_at is not null
returning s.session
