-- Delete the postings of a namespace, which no foreign key deletes.
delete from postings where namespace_id = :namespace::uuid
