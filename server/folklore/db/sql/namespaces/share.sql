update namespaces set shared = :shared::text where id = :namespace::uuid and deleted_at is null returning id
