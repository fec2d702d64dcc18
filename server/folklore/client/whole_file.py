"""Files that are replaced whole or not at all."""

import os
import secrets
from pathlib import Path


def replace_file(path: Path, content: bytes, mode: int | None = None) -> None:
    """Rename a complete file over the old one, with this mode or that of any new file."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        with os.fdopen(
            os.open(temporary, flags, 0o666 if mode is None else 0o600), "wb"
        ) as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        if mode is not None:
            temporary.chmod(mode)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)  # it is there only after an error
