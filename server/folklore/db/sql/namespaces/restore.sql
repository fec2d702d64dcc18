-- Restore a deleted namespace. A name in use by now violates namespaces_name_key.
update namespaces set deleted_at = null, deleted_by = null
where id = :namespace::uuid and deleted_at is not null
returning id
