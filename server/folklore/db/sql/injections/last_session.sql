-- The caller's last session in a project before :before.
select s.session, s.started_at
from assistant_sessions s
where s.namespace_id = any(:namespaces::uuid[])
    and (s.project = :project::text or s.namespace_id <> '00000000-0000-0000-0000-000000000000') and s.caller = :caller::text
    and s.session <> '' and s.started_at < :before::timestamptz
order by s.started_at desc
limit 1
