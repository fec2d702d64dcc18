-- How many memories each namespace within :within (null: all) holds, and how many of those have no embedding in :model,
-- counted up to 50,000.
select n.name, n.shared,
    (select count(*) from (
        select from memories m where m.namespace_id = n.id and m.forgotten_at is null limit 50000
    ) bounded) as memories
-- include without_vector
from namespaces n
where n.deleted_at is null and (:within::uuid[] is null or n.id = any(:within::uuid[]))
order by n.name
