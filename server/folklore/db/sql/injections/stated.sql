-- The statements of a caller in a project that were not stored, oldest first; with :session of this session alone. `asks`
-- counts the requests of the session so far. A project without memories has its sessions under the id of zeros.
select s.namespace_id as namespace, s.session, s.asks, said.key as sentence,
    (said.value ->> 'said_at')::timestamptz as said_at, (said.value ->> 'asked_at')::timestamptz as asked_at
from assistant_sessions s
cross join lateral jsonb_each(s.stated) said
where s.namespace_id = any(:namespaces::uuid[])
    and (s.project = :project::text or s.namespace_id <> '00000000-0000-0000-0000-000000000000') and s.caller = :caller::text
    and (:session::text is null or s.session = :session::text)
order by said_at, sentence
