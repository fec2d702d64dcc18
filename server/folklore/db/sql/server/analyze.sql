analyze memories, embeddings, postings, revisions, relations, idempotency_keys, usage
