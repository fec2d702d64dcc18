analyze memories, embeddings, postings
