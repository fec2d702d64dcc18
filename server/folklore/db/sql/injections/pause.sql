-- Silence the hooks of a session until a time, or of every session of a caller, which has no name here.
insert into assistant_sessions (namespace_id, caller, session, started_at, project, paused_until)
select :namespace::uuid, :caller::text, :session::text, :now::timestamptz, '', :until::timestamptz
on conflict (namespace_id, caller, session) do update set paused_until = excluded.paused_until
returning session
