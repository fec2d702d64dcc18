-- Every namespace, or with :deleted every deleted one, within :within (null: all). Memories are counted up to 50,000, an
-- order of magnitude, without the forgotten ones, as everywhere.
select n.id, n.name, n.description, n.language, n.languages, n.shared, n.created_at, n.deleted_at, n.deleted_by,
    (select count(*) from (
        select from memories m where m.namespace_id = n.id and m.forgotten_at is null limit 50000
    ) bounded) as memories
from namespaces n
where (n.deleted_at is not null) = :deleted::boolean
    and (:within::uuid[] is null or n.id = any(:within::uuid[]))
order by n.name
