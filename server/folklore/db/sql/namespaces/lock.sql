-- Whoever changes memories that are there already has the namespace to himself until his transaction ends; a store
-- holds it with others (namespaces_ensure). So rows are never waited for in a ring, in whatever order they are changed.
select id, deleted_at from namespaces where id = :namespace::uuid for update
