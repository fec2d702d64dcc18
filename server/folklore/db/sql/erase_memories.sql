-- The rows themselves; vectors, relations and the usage log go with them, postings went before.
delete from memories m
where m.namespace_id = :namespace::uuid and m.id = any(:ids::uuid[])
returning m.id
