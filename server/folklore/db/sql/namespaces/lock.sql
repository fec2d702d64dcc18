-- Lock a namespace exclusively for changes of stored memories, until the transaction ends; a store locks it in shared
-- mode (namespaces/ensure). So changes never wait for each other in a circle, in whatever order they touch rows.
select id, deleted_at from namespaces where id = :namespace::uuid for update
