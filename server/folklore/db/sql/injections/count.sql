select count(*) as count from injections i where i.namespace_id = :namespace::uuid and i.injected_at < :before::timestamptz
