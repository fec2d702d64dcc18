-- At most :most of the memories that the filters let through.
select m.id, m.namespace_id
from (
-- include state
    where o.namespace_id = any(:namespaces::uuid[])
) m
where
-- include visible
limit :most::integer
