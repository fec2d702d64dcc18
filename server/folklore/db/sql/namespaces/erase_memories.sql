-- Vectors, relations and revisions go with them.
delete from memories where namespace_id = :namespace::uuid
