"""Folklore: one long-term memory for AI coding assistants that a whole team shares."""

__version__ = "0.1.0"

# The address that pip needs after the name of the package while it is not on PyPI; `make version` empties it.
SOURCE = " @ git+https://github.com/folklore-mcp/folklore"


def pip_install(extra: str = "") -> str:
    """Return the command that installs Folklore, with an extra if one is named."""
    return f"pip install 'folklore-mcp{f'[{extra}]' if extra else ''}{SOURCE}'"
