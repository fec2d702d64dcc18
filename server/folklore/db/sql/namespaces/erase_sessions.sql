-- Delete the assistants' sessions of a namespace, which no foreign key deletes.
delete from assistant_sessions where namespace_id = :namespace::uuid
