-- Record that an assistant's session works in a project, and what was stated in it, by sentence. In a session that is known,
-- a call without a statement locks and writes nothing; one that holds 100 of them takes no more.
insert into assistant_sessions as s (namespace_id, caller, session, started_at, project, stated)
select :namespace::uuid, :caller::text, :session::text, :now::timestamptz, :project::text, :stated::jsonb
where :stated::jsonb <> '{}' or not exists (
    select from assistant_sessions known
    where known.namespace_id = :namespace::uuid and known.caller = :caller::text and known.session = :session::text
)
on conflict (namespace_id, caller, session) do update set stated = excluded.stated || s.stated
where excluded.stated <> '{}' and (select count(*) from jsonb_object_keys(s.stated)) < 100
returning s.session
