delete from audit where namespace_id = :namespace::uuid
