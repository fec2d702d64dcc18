-- Vectors, relations and revisions go with them; postings, which no key holds, went before.
delete from memories m where m.namespace_id = :namespace::uuid and m.id = any(:ids::uuid[])
returning m.id
