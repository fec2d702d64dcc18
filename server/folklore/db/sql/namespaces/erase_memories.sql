-- Delete the memories of a namespace; embeddings, relations, revisions, keys, usage and injections are deleted
-- by foreign keys.
delete from memories where namespace_id = :namespace::uuid
