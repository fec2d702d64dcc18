"""A keyring in a file, for the library `keyring`: PYTHON_KEYRING_BACKEND=tests.file_keyring.Keyring."""

import json
import os
import time
from pathlib import Path

from keyring.backend import KeyringBackend
from keyring.errors import PasswordDeleteError


class Keyring(KeyringBackend):
    """Entries in the file TEST_KEYRING. With TEST_KEYRING_LOCKED it waits for a person, as a locked one does."""

    priority = 1

    def get_password(self, service: str, username: str) -> str | None:
        found: str | None = self._entries().get(f"{service} {username}")
        return found

    def set_password(self, service: str, username: str, password: str) -> None:
        self._write(self._entries() | {f"{service} {username}": password})

    def delete_password(self, service: str, username: str) -> None:
        entries = self._entries()
        if entries.pop(f"{service} {username}", None) is None:
            raise PasswordDeleteError
        self._write(entries)

    def _entries(self) -> dict[str, str]:
        if "TEST_KEYRING_LOCKED" in os.environ:
            time.sleep(120)
        path = Path(os.environ["TEST_KEYRING"])
        entries: dict[str, str] = json.loads(path.read_text()) if path.exists() else {}
        return entries

    def _write(self, entries: dict[str, str]) -> None:
        Path(os.environ["TEST_KEYRING"]).write_text(json.dumps(entries))
