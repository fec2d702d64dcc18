-- Record that an assistant is asked to store what was decided; no row if another process was first.
update assistant_sessions s
set asked_at = :now::timestamptz
where s.namespace_id = :namespace::uuid and s.caller = :caller::text and s.session = :session::text
    and s.asked_at is null
returning s.session
