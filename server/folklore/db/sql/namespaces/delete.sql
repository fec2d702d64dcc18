update namespaces set deleted_at = :now::timestamptz, deleted_by = :author::text
where id = :namespace::uuid and deleted_at is null
returning id
