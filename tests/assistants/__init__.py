"""Real assistants against Folklore, with a model that follows a script."""
