-- Delete memories. Their embeddings, relations, revisions, keys, usage and injections are deleted by foreign keys;
-- their postings, which have none, must be deleted before.
delete from memories m where m.namespace_id = :namespace::uuid and m.id = any(:ids::uuid[])
returning m.id
