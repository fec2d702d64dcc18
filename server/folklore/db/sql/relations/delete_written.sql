-- Remove the relations of the memory :id that :author wrote at :at.
delete from relations r
where r.namespace_id = :namespace::uuid and (r.from_id = :id::uuid or r.to_id = :id::uuid)
    and r.author = :author::text and r.created_at = :at::timestamptz
returning r.from_id, r.type, r.to_id
