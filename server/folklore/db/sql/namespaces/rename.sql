-- Rename a namespace. A name in use violates namespaces_name_key.
update namespaces set name = :name::text where id = :namespace::uuid and deleted_at is null returning id
