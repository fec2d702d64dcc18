-- Renew the planner's statistics of every data table.
analyze memories, embeddings, postings, revisions, relations, idempotency_keys, usage
