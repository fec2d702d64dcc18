-- What a session was given from :since to :before and has not used.
select i.namespace_id as namespace, i.memory_id as memory, i.injected_at, m.content
from injections i
join memories m on m.namespace_id = i.namespace_id and m.id = i.memory_id
where i.namespace_id = any(:namespaces::uuid[]) and i.caller = :caller::text and i.session = :session::text
    and i.used_at is null and i.injected_at >= :since::timestamptz and i.injected_at < :before::timestamptz
