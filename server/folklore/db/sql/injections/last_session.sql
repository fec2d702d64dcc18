-- When the caller's last session in a project before :before began.
select max(s.started_at) as started_at
from assistant_sessions s
where s.namespace_id = :namespace::uuid and s.caller = :caller::text and s.started_at < :before::timestamptz
