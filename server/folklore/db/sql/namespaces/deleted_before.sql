select id from namespaces where deleted_at < :before::timestamptz order by id
