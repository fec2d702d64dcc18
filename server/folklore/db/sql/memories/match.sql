-- The first :fetch memories by id that the filters let through, among :shown if given.
select m.id
from (
-- include state
    where o.namespace_id = :namespace::uuid
) m
where
-- include visible
    and (:shown::uuid[] is null or m.id = any(:shown::uuid[]))
order by m.id
limit :fetch::integer
