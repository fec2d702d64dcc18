-- Delete the memories of a namespace; embeddings, relations, revisions, keys and usage are deleted by foreign keys.
delete from memories where namespace_id = :namespace::uuid
