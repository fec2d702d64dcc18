-- The latest :most pairs in force of which one contradicts the other.
select r.from_id, r.to_id
from relations r
where r.namespace_id = :namespace::uuid and
-- include contradicting
order by r.created_at desc, r.from_id, r.to_id
limit :most::integer
