-- One store at a time may number the memories of this namespace's sessions.
select id from namespaces where id = :namespace::uuid for no key update
