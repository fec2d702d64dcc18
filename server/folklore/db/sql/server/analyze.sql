analyze memories, embeddings, postings, revisions, relations, idempotency_keys, usage, injections, assistant_sessions
