"""Settings for MCP clients, ready to paste, each valid in every repository of the user."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path


def client_snippets(url: str, python: str, options: Sequence[str] = (), *, database_said: bool = False) -> str:
    """Return how Claude Code, Cursor and VS Code reach this server over HTTP, and how they start their own on stdio.

    All are settings of the user, not of one repository. A client does not start its server in this shell: `options`
    lead that server to the same memory. With `database_said`, a variable or a flag names the database; its password
    is not printed.
    """
    script = Path(python).with_name("folklore")
    command = [*([str(script)] if script.exists() else [python, "-m", "folklore"]), *options, "serve"]
    over_http = {"url": f"{url}/mcp"}
    on_stdio = {"command": command[0], "args": command[1:]}
    return "\n".join(
        [
            "Each of these holds in every repository; choose one per client.",
            "Claude Code, over HTTP (this server):",
            f"  claude mcp add --scope user --transport http folklore {url}/mcp",
            "Claude Code, on stdio (starts its own server, same memory):",
            f"  claude mcp add --scope user folklore -- {shlex.join(command)}",
            "Cursor (add it to ~/.cursor/mcp.json), over HTTP:",
            f"  {_cursor(over_http)}",
            "Cursor, on stdio:",
            f"  {_cursor(on_stdio)}",
            "VS Code (adds it to your user profile), over HTTP:",
            f"  {_vs_code({'type': 'http', **over_http})}",
            "VS Code, on stdio:",
            f"  {_vs_code({'type': 'stdio', **on_stdio})}",
            'Over HTTP with tokens, add at the end of the line for Claude Code (Cursor, VS Code: in "headers"):',
            '  --header "Authorization: Bearer fk_…"',
            *(
                ["A server on stdio needs FOLKLORE_DATABASE_URL as here, else it uses another memory."]
                if database_said
                else []
            ),
            "If neither a call nor the settings name a namespace, memories go:",
            "  from Claude Code, on stdio: to that of the repository it works in;",
            "  from Cursor and VS Code, on stdio: to `default`, as both start the server in your home directory;",
            "  over HTTP: to that in the header Folklore-Namespace or the token's, else the call fails (docs/http.md).",
            "",
        ]
    )


def _cursor(server: Mapping[str, object]) -> str:
    return json.dumps({"mcpServers": {"folklore": server}})


def _vs_code(server: Mapping[str, object]) -> str:
    return shlex.join(["code", "--add-mcp", json.dumps({"name": "folklore", **server})])
