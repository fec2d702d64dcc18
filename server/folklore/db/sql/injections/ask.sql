-- Record that an assistant is asked to store what was decided in its session, and return a row if it may be asked: once,
-- after a decision, if the caller has written no memory since the session began.
update assistant_sessions s
set asked_at = :now::timestamptz
where s.namespace_id = any(:namespaces::uuid[]) and s.caller = :caller::text and s.session = :session::text
    and s.asked_at is null and s.decided_at is not null
    and not exists (
        select from audit a
        where a.namespace_id = any(:namespaces::uuid[]) and a.principal = :caller::text
            and a.action = any(:writes::text[]) and a.outcome = 'done' and a.at >= s.started_at
    )
returning s.session
