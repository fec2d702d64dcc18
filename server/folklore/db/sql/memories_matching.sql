-- The memories within the filters, the first :fetch by id.
select m.id
from memories m
where m.namespace_id = :namespace::uuid
    and
-- include visible
order by m.id
limit :fetch::integer
