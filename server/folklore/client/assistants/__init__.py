"""Installation into assistants: where each keeps its MCP servers, and edits of those files."""
