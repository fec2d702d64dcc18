-- The namespaces that were deleted before :before.
select id from namespaces where deleted_at < :before::timestamptz order by id
