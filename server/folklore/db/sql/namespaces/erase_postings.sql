delete from postings where namespace_id = :namespace::uuid
