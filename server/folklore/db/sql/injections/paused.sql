-- Until when the hooks of a session are silent.
select max(s.paused_until) as until
from assistant_sessions s
where s.namespace_id = :namespace::uuid and s.caller = :caller::text and s.session = any(array['', :session::text])
    and s.paused_until > :now::timestamptz
