-- Record that an assistant is asked to store statements; no row if another process was first.
update assistant_sessions s
set asks = s.asks + 1, stated = s.stated || :stated::jsonb
where s.namespace_id = :namespace::uuid and s.caller = :caller::text and s.session = :session::text
    and s.asks = :asks::integer
returning s.session
