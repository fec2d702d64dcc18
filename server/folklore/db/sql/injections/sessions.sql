-- A session of an assistant, the first row first: it has several if its project got a namespace meanwhile, or if its
-- directory changed.
select s.namespace_id as namespace, s.started_at, s.decided_at, s.asked_at
from assistant_sessions s
where s.namespace_id = any(:namespaces::uuid[]) and s.caller = :caller::text and s.session = :session::text
order by s.started_at, s.namespace_id
