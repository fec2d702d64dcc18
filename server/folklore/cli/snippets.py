"""Settings for MCP clients, ready to paste."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path


def client_snippets(url: str, python: str, options: Sequence[str] = (), *, database_said: bool = False) -> str:
    """How Claude Code, Cursor and VS Code reach this server over HTTP, and how they start one of their own on stdio.

    A client does not start its own in this shell: `options` are those that lead it to the same memory. With
    `database_said`, a variable or a flag names the database, whose password is not printed.
    """
    script = Path(python).with_name("folklore")
    command = [*([str(script)] if script.exists() else [python, "-m", "folklore"]), *options, "serve"]
    over_http = {"type": "http", "url": f"{url}/mcp"}
    on_stdio = {"type": "stdio", "command": command[0], "args": command[1:]}
    return "\n".join(
        [
            "Claude Code, over HTTP (this server):",
            f"  claude mcp add --transport http folklore {url}/mcp",
            "Claude Code, on stdio (starts its own, same memory):",
            f"  claude mcp add folklore -- {shlex.join(command)}",
            "Cursor (~/.cursor/mcp.json), over HTTP:",
            f"  {_json({'mcpServers': {'folklore': {'url': f'{url}/mcp'}}})}",
            "Cursor, on stdio:",
            f"  {_json({'mcpServers': {'folklore': {'command': command[0], 'args': command[1:]}}})}",
            "VS Code (.vscode/mcp.json), over HTTP:",
            f"  {_json({'servers': {'folklore': over_http}})}",
            "VS Code, on stdio:",
            f"  {_json({'servers': {'folklore': on_stdio}})}",
            'Once there are tokens, over HTTP also (Cursor, VS Code: in "headers"):',
            '  --header "Authorization: Bearer fk_…"',
            *(
                ["On stdio it needs FOLKLORE_DATABASE_URL as here, else it has another memory."]
                if database_said
                else []
            ),
            "",
        ]
    )


def _json(value: object) -> str:
    return json.dumps(value)
