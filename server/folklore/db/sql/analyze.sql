analyze memories, embeddings, postings, revisions, relations, usage
