-- What a session was given from :since to :before and has not used.
select i.namespace_id as namespace, i.memory_id as memory, i.injected_at,
    (select m.content from memories m where m.namespace_id = i.namespace_id and m.id = i.memory_id) as content
from injections i
where i.namespace_id = any(:namespaces::uuid[]) and i.caller = :caller::text and i.session = :session::text
    and i.used_at is null and i.injected_at >= :since::timestamptz and i.injected_at < :before::timestamptz
