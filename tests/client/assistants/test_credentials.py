"""Tokens for servers: in the keyring, in a file without one, and in the commands that need them."""

import os
import stat
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from folklore.client import credentials
from folklore.client.credentials import (
    delete_token,
    normalised,
    read_token,
    save_token,
)
from folklore.errors import ConfigInvalid, InvalidInput, Unavailable
from tests import ROOT

SERVER = "https://memory.example.com"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without tokens, on a machine without a keyring."""
    monkeypatch.setenv("FOLKLORE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def keyring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a keyring that works."""
    path = tmp_path / "keyring.json"
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "tests.file_keyring.Keyring")
    monkeypatch.setenv("TEST_KEYRING", str(path))
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
    return path


def test_without_a_keyring_a_token_is_kept_in_a_file_that_only_its_owner_reads(
    home: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words = save_token(SERVER, "fk_one")

    (file,) = (home / "credentials").iterdir()
    assert str(file) in words
    assert read_token(SERVER) == "fk_one"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert capfd.readouterr() == ("", "")


def test_with_a_keyring_no_file_holds_the_token(home: Path, keyring: Path) -> None:
    save_token(SERVER, "fk_one")

    (file,) = (home / "credentials").iterdir()
    assert "fk_one" not in file.read_text()
    assert "fk_one" in keyring.read_text()
    assert read_token(SERVER) == "fk_one"


def test_a_new_token_replaces_the_one_in_the_other_place(
    home: Path, keyring: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_token(SERVER, "fk_keyring")
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
    save_token(SERVER, "fk_file")
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "tests.file_keyring.Keyring")
    assert read_token(SERVER) == "fk_file"

    save_token(SERVER, "fk_again")

    assert read_token(SERVER) == "fk_again"
    assert "fk_file" not in "".join(
        file.read_text() for file in (home / "credentials").iterdir()
    )


def test_a_locked_keyring_delays_neither_reading_nor_saving_for_long(
    home: Path, keyring: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_token(SERVER, "fk_one")
    monkeypatch.setenv("TEST_KEYRING_LOCKED", "1")
    monkeypatch.setattr(credentials, "_SECONDS", 1.0)

    with pytest.raises(Unavailable, match=r"keyring, which does not answer.*Unlock"):
        read_token(SERVER)
    save_token(SERVER, "fk_two")

    assert read_token(SERVER) == "fk_two"


def test_each_server_has_its_own_token_in_every_spelling_of_its_address(
    home: Path,
) -> None:
    save_token("HTTPS://Memory.Example.com:443/", "fk_one")
    save_token("http://127.0.0.1:8765", "fk_two")
    save_token("https://memory.example.com/team/", "fk_three")

    assert read_token("https://memory.example.com/mcp") == "fk_one"
    assert read_token("http://127.0.0.1:8765/mcp") == "fk_two"
    assert read_token("https://memory.example.com/team") == "fk_three"
    assert read_token("https://memory.example.com:8443") is None
    assert read_token("http://memory.example.com") is None


def test_a_deleted_token_is_gone_from_file_and_keyring(
    home: Path, keyring: Path
) -> None:
    save_token(SERVER, "fk_one")

    assert delete_token(SERVER)
    assert not delete_token(SERVER)

    assert read_token(SERVER) is None
    assert "fk_one" not in keyring.read_text()


def test_a_token_belongs_to_one_home(home: Path, tmp_path: Path) -> None:
    save_token(SERVER, "fk_one")

    assert read_token(SERVER, home=tmp_path / "other") is None


def test_what_is_no_token_is_refused_without_repeating_it(home: Path) -> None:
    for wrong in ("", "fk_…", "fk one", "fk_one\n"):
        with pytest.raises(InvalidInput, match=r"^token: is not a token\."):
            save_token(SERVER, wrong)
    assert read_token(SERVER) is None


@pytest.mark.parametrize(
    "wrong",
    ["memory.example.com", "ftp://x", "https://", "https://[", "https://x:99999"],
)
def test_what_is_no_address_is_refused(wrong: str) -> None:
    with pytest.raises(InvalidInput, match=r"^server: is not an address"):
        normalised(wrong)


def test_a_damaged_file_is_reported_and_can_be_replaced(home: Path) -> None:
    save_token(SERVER, "fk_one")
    (file,) = (home / "credentials").iterdir()
    file.write_text("not json")

    with pytest.raises(ConfigInvalid, match=r"cannot be read. Delete it"):
        read_token(SERVER)

    save_token(SERVER, "fk_two")
    assert read_token(SERVER) == "fk_two"


def test_two_processes_that_save_at_once_leave_one_whole_token(home: Path) -> None:
    tokens = [f"fk_{number}" for number in range(8)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda token: save_token(SERVER, token), tokens))

    assert read_token(SERVER) in tokens
    assert len(list((home / "credentials").iterdir())) == 1


def test_a_file_of_the_repository_is_not_taken_for_the_library(
    home: Path, keyring: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "keyring.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    monkeypatch.chdir(tmp_path)

    save_token(SERVER, "fk_one")

    assert read_token(SERVER) == "fk_one"
    assert not (tmp_path / "ran").exists()
    assert "keyring" not in sys.modules
