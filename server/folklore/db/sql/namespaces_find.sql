-- :names the namespaces asked for, null for all of them; :within those the caller may know of, null for all. Whether one is empty is asked, not how much it holds: this
-- statement begins every recall. It also tells which embedding model counts.
select n.id, n.name, n.languages, not exists (select from memories m where m.namespace_id = n.id) as empty,
    (select id from models where role = 'active') as model
from namespaces n
where n.deleted_at is null and (:within::uuid[] is null or n.id = any(:within::uuid[]))
    and (:names::text[] is null or lower(n.name collate "C") in (
        select lower(name collate "C") from unnest(:names::text[]) as asked (name)
    ))
order by n.name
