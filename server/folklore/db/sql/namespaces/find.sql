-- The namespaces of :names (null: all) within :within (null: all), each with its languages, the id of the active
-- embedding model, `empty`: recall leaves empty ones out, and `shared`: recall asks those in every project. This statement begins every recall. A subquery for one
-- row in the order of the key uses the index. For exists() the planner may prefer a sequential scan, which it expects
-- to end at the first row, and which reads all memories for each empty namespace.
select n.id, n.name, n.languages, (
        select m.id from memories m where m.namespace_id = n.id order by m.id limit 1
    ) is null as empty,
    (select id from models where role = 'active') as model, n.shared = 'always' as shared
from namespaces n
where n.deleted_at is null and (:within::uuid[] is null or n.id = any(:within::uuid[]))
    and (:names::text[] is null or lower(n.name collate "C") in (
        select lower(name collate "C") from unnest(:names::text[]) as asked (name)
    ))
order by n.name
