select count(*) as count from usage u where u.namespace_id = :namespace::uuid and u.used_at < :before::timestamptz
