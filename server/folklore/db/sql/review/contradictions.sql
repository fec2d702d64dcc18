-- The latest :most pairs in force of which one contradicts the other, unless both are kept (:kept, in any direction).
select r.from_id, r.to_id
from relations r
join memories one on one.namespace_id = r.namespace_id and one.id = r.from_id
join memories other on other.namespace_id = r.namespace_id and other.id = r.to_id
where r.namespace_id = :namespace::uuid and r.type = :type::text
    and one.forgotten_at is null and one.superseded_at is null
    and other.forgotten_at is null and other.superseded_at is null
    and not exists (
        select from relations k
        where k.namespace_id = r.namespace_id and k.type = :kept::text
            and ((k.from_id, k.to_id) = (r.from_id, r.to_id) or (k.from_id, k.to_id) = (r.to_id, r.from_id))
    )
order by r.created_at desc, r.from_id, r.to_id
limit :most::integer
