"""Folklore: one long-term memory for AI coding assistants that a whole team shares."""

__version__ = "0.1.0"

# The address that pip needs after the name of the package while it is not on PyPI; `make version` empties it.
SOURCE = " @ git+https://github.com/folklore-mcp/folklore"


# The folder of the other distribution at that address.
_IMPORT_FOLDER = "#subdirectory=import"


def pip_install(extra: str = "") -> str:
    """Return the command that installs Folklore with its importers, or an extra if one is named."""
    if extra:
        return f"pip install 'folklore-mcp[{extra}]{SOURCE}'"
    return f"pip install 'folklore-mcp{SOURCE}' '{requirement_of_importers()}'"


def requirement_of_importers() -> str:
    """Return what pip is to install for `folklore import` to read other formats than Folklore's own."""
    folder = _IMPORT_FOLDER if SOURCE else ""
    return f"folklore-import{SOURCE}{folder}"
