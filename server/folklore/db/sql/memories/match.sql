-- The memories within the filters, the first :fetch by id. :shown none but these, null for any.
select m.id
from memories m
where m.namespace_id = :namespace::uuid
    and
-- include visible
    and (:shown::uuid[] is null or m.id = any(:shown::uuid[]))
order by m.id
limit :fetch::integer
