-- Delete the row of a namespace, after all rows that belong to it.
delete from namespaces where id = :namespace::uuid
