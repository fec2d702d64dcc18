update namespaces set description = :description::text where id = :namespace::uuid and deleted_at is null returning id
