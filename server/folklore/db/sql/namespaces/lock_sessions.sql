-- Let one store at a time number the memories of this namespace's sessions.
select id from namespaces where id = :namespace::uuid for no key update
