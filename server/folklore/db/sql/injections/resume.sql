-- End every pause of a caller.
update assistant_sessions s
set paused_until = null
where s.namespace_id = :namespace::uuid and s.caller = :caller::text and s.paused_until is not null
returning s.session
