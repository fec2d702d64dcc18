-- Record that an assistant is asked to store what was decided in its session, and return a row if it may be asked: once,
-- after a decision, if the caller has written no memory since the session began. The session has two rows if its project
-- got its first memory meanwhile.
with known as (
    select min(s.started_at) as started_at, max(s.decided_at) as decided_at, max(s.asked_at) as asked_at
    from assistant_sessions s
    where s.namespace_id = any(:namespaces::uuid[]) and s.caller = :caller::text and s.session = :session::text
)
update assistant_sessions s
set asked_at = :now::timestamptz
from known
where s.namespace_id = any(:namespaces::uuid[]) and s.caller = :caller::text and s.session = :session::text
    and s.asked_at is null and known.asked_at is null and known.decided_at is not null
    and not exists (
        select from audit a
        where a.namespace_id = any(:namespaces::uuid[]) and a.principal = :caller::text
            and a.action = any(:writes::text[]) and a.outcome = 'done' and a.at >= known.started_at
    )
returning s.session
