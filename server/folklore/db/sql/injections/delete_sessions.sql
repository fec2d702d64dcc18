delete from assistant_sessions s
where s.namespace_id = :namespace::uuid and s.started_at < :before::timestamptz
returning s.session
