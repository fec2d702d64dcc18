-- True for a relation r of the type :contradicts between two memories in force, unless both are kept (:kept, in any
-- direction).
    r.type = :contradicts::text
    and (
        select count(*) from memories m
        where m.namespace_id = r.namespace_id and m.id in (r.from_id, r.to_id)
            and m.forgotten_at is null and m.superseded_at is null
    ) = 2
    and not exists (
        select from relations k
        where k.namespace_id = r.namespace_id and k.type = :kept::text
            and ((k.from_id, k.to_id) = (r.from_id, r.to_id) or (k.from_id, k.to_id) = (r.to_id, r.from_id))
    )
