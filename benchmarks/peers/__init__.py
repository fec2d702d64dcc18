"""Other memories for assistants, measured on the same texts with the same embedding model; none is a dependency."""
