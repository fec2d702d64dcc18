-- The latest injected notes in :namespaces, newest first; of one caller and of one session if given.
select i.injection_id as injection, n.name as namespace, i.memory_id as memory, i.rank, i.caller, i.session, i.event,
    i.injected_at, i.heading, i.note, i.tokens, i.used_at, i.used
from injections i
join namespaces n on n.id = i.namespace_id
where i.namespace_id = any(:namespaces::uuid[])
    and (:caller::text is null or i.caller = :caller::text)
    and (:session::text is null or starts_with(i.session, :session::text))
order by i.injected_at desc, i.injection_id desc, i.rank
limit :fetch::integer
