"""Encryption of backups in the format age (https://age-encryption.org/v1), by the optional package pyrage."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from folklore import pip_install
from folklore.config import expanded
from folklore.errors import InvalidInput

_FIELD = "backup.key"
_SECRET = "AGE-SECRET-KEY-1"  # noqa: S105 - the beginning of every such line
_NEW_KEY = "`folklore backups new-key FILE` writes one."


class Key:
    """The identity in a file of age, which encrypts and decrypts. Streams are read and written in constant memory."""

    def __init__(self, path: Path) -> None:
        self._age = _age()
        self._path = path
        try:
            lines = expanded(path).read_text(encoding="ascii").split()
            self._identity = self._age.x25519.Identity.from_str(
                next(line for line in lines if line.startswith(_SECRET))
            )
        except OSError as error:
            raise InvalidInput(
                _FIELD, f"{path} cannot be read ({error.strerror}).", hint=_NEW_KEY
            ) from None
        except (StopIteration, ValueError, self._age.IdentityError):
            raise InvalidInput(
                _FIELD, f"{path} holds no line {_SECRET}….", hint=_NEW_KEY
            ) from None

    @contextmanager
    def encrypting(self, out: BinaryIO) -> Iterator[BinaryIO]:
        """Yield a file whose bytes are written to `out`, encrypted."""
        source, target = _pipe()
        recipient = self._identity.to_public()
        with _thread(
            lambda: self._age.encrypt_io(source, out, [recipient]), source
        ) as work:
            try:
                with target:
                    yield target
            finally:
                work.result()

    @contextmanager
    def decrypting(self, source: BinaryIO) -> Iterator[BinaryIO]:
        """Yield a file with the decrypted bytes of `source`. Raises InvalidInput for another key, or changed bytes."""
        plain, target = _pipe()
        with _thread(
            lambda: self._age.decrypt_io(source, target, [self._identity]), target
        ) as work:
            try:
                with plain:
                    yield plain
            finally:
                error = work.exception()
                if isinstance(error, self._age.DecryptError):
                    hint = "Set the right one."
                    raise InvalidInput(
                        _FIELD,
                        f"{self._path} is not the key of this backup.",
                        hint=hint,
                    )
                if error is not None and not isinstance(error, BrokenPipeError):
                    raise InvalidInput(
                        "FILE", f"is damaged ({error}).", hint="Take another backup."
                    ) from error


def new_key(path: Path) -> str:
    """Write a new key into a new file for the owner alone; return its public part. Raises InvalidInput."""
    identity = _age().x25519.Identity.generate()
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise InvalidInput(
            "FILE", f"{path} cannot be created ({error.strerror})."
        ) from None
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(f"# public key: {identity.to_public()}\n{identity}\n")
    return str(identity.to_public())


@contextmanager
def _thread(run: Callable[[], None], end: BinaryIO) -> Iterator[Future[None]]:
    """Read or write one end of a pipe in a thread, which closes it, so that the other end never waits for it."""

    def work() -> None:
        with end:
            run()

    with ThreadPoolExecutor(1, "backup-cipher") as threads:
        yield threads.submit(work)


def _pipe() -> tuple[BinaryIO, BinaryIO]:
    source, target = os.pipe()
    return os.fdopen(source, "rb"), os.fdopen(target, "wb")


def _age() -> Any:
    try:
        import pyrage  # optional
    except ImportError:
        raise InvalidInput(
            _FIELD,
            "needs the package pyrage.",
            hint=f"Run: {pip_install('encryption')}",
        ) from None
    return pyrage
