"""Backups hold one moment of the database, are verified in a copy, and replace the database whole or not at all."""

import asyncio
import json
import os
import random
import re
import shutil
import signal
import stat
import subprocess
import sys
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from folklore.app import App
from folklore.backup.archive import Archive, archives, write_archive
from folklore.backup.contents import read_contents
from folklore.backup.operations import (
    Store,
    back_up,
    latest_verified,
    prune,
    restore,
    verify,
)
from folklore.backup.programs import _without_password, find_programs
from folklore.config import Settings
from folklore.contract.health import BackupsRequest
from folklore.contract.memories import StoreRequest
from folklore.contract.recall import RecallRequest
from folklore.db.database import Moment
from folklore.db.databases import Databases, _beginning, _named, address_of
from folklore.errors import (
    Conflict,
    InvalidInput,
    NotFound,
    Refused,
    SchemaAhead,
    SchemaBehind,
)
from folklore.jobs.definitions import BY_NAME
from folklore.jobs.job import JobOptions
from folklore.model import Draft
from folklore.runtime import database_address
from tests import ROOT
from tests.background_jobs import BackgroundJobs, everything
from tests.commands import CommandLine, Ran, command_line
from tests.doors import own_service
from tests.person import Person, contents

__all__ = ["command_line"]

DEPLOY = "We deploy from Frankfurt."
CAT = "The office cat is called Turing."
LATER = "Invoices go out on Mondays."
SINCE = "The lift is out of order."


@pytest.fixture
def store(database_url: str, tmp_path: Path) -> Store:
    return Store(database_url, tmp_path / "backups")


@pytest.fixture
async def archive(person: Person, store: Store) -> Archive:
    """A backup of two memories."""
    await person.keep(DEPLOY, CAT)
    return await back_up(store)


@pytest.fixture
async def file(folklore: CommandLine, tmp_path: Path) -> Path:
    """A backup of one memory, made by the command."""
    await folklore.done("store", DEPLOY)
    await folklore.done("backup", tmp_path / "first.backup")
    return tmp_path / "first.backup"


def flip(source: Path, target: Path) -> None:
    """Write a copy of a backup in which a bit differs."""
    content = bytearray(source.read_bytes())
    content[2_000] ^= 1
    target.write_bytes(content)


def manifest_of(archive: Archive) -> Any:
    return json.loads(zipfile.ZipFile(archive.path).read("manifest.json"))


async def rows(dsn: str) -> dict[str, list[str]]:
    connection = await asyncpg.connect(dsn)
    try:
        return await everything(connection)
    finally:
        await connection.close()


async def databases_of(dsn: str) -> list[str]:
    """Return the databases of the server that a restore of this one made."""
    connection = await asyncpg.connect(dsn)
    try:
        found = await connection.fetch(
            "select datname from pg_database where starts_with(datname, current_database() || '_')"
        )
        return [row["datname"] for row in found]
    finally:
        await connection.close()


async def test_a_restored_backup_has_every_row_as_it_was(
    person: Person, store: Store
) -> None:
    await person.keep(DEPLOY, CAT)
    await person.keep(
        Draft(
            "We deploy from Dublin.",
            supersedes=(await person.recall("deploy")).memories[0].memory.id,
        )
    )
    before = await rows(store.dsn)
    archive = await back_up(store)
    await verify(store, archive)
    await person.keep(LATER)

    done = await restore(store, archive)

    assert await rows(store.dsn) == before
    assert done.memories == 3
    assert await databases_of(store.dsn) == []
    assert archive.verified_at is not None


async def test_what_a_restore_replaced_can_be_restored(
    folklore: CommandLine, file: Path
) -> None:
    await folklore.done("store", LATER)

    (point,) = (await folklore.json("restore", file, "--yes"))["restore_points"]
    assert LATER not in await folklore.done("list")
    await folklore.done("restore", point, "--yes")

    assert LATER in await folklore.done("list")


async def test_writes_during_a_restore_are_in_a_backup(
    person: Person, store: Store, archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    await person.keep(SINCE)
    put_in_place = Databases.put_in_place

    async def after_a_write(self: Databases) -> str:
        await person.keep(LATER)
        return await put_in_place(self)

    monkeypatch.setattr(Databases, "put_in_place", after_a_write)
    done = await restore(store, archive)

    _, later = done.restore_points
    await restore(store, Archive.read(later))
    held = "\n".join((await rows(store.dsn))["memories"])
    assert all(text in held for text in (DEPLOY, CAT, SINCE, LATER))


async def test_a_running_application_answers_from_the_restored_database(
    app: App, tmp_path: Path
) -> None:
    store = Store((await database_address(app.settings))[0], tmp_path)
    await own_service(app).call(
        StoreRequest(memories=(Draft(DEPLOY),), namespace="notes")
    )
    archive = await back_up(store)
    await own_service(app).call(
        StoreRequest(memories=(Draft(LATER),), namespace="notes")
    )

    await restore(store, archive)

    answer = await own_service(app).call(
        RecallRequest(query="deploy invoices", namespaces=("notes",))
    )
    assert contents(answer) == [DEPLOY]


@pytest.mark.parametrize(
    "count",
    [
        4,
        pytest.param(
            int(os.environ.get("TEST_BACKUPS", "40")),
            marks=pytest.mark.strain,
            id="many",
        ),
    ],
)
async def test_backups_during_writes_are_of_one_moment(
    person: Person, store: Store, count: int
) -> None:
    """Back up and verify while memories are stored, superseded and forgotten."""
    ended = asyncio.Event()

    async def write(seed: int) -> None:
        chance = random.Random(seed)
        number = 0
        while not ended.is_set():
            number += 1
            ids = await person.keep(
                *(
                    f"Fact {seed}.{number}.{part} of {chance.random()}"
                    for part in range(3)
                )
            )
            if chance.random() < 0.3:
                await person.forget(ids[0])
            await asyncio.sleep(0.05)  # so that the store stays small

    writers = [asyncio.create_task(write(seed)) for seed in range(2)]
    try:
        for _ in range(count):
            await verify(store, await back_up(store))
    finally:
        ended.set()
        await asyncio.gather(*writers)
    assert len(archives(store.folder)) == count
    assert await databases_of(store.dsn) == []


@pytest.mark.parametrize("damage", ["a byte", "the end", "no archive"])
async def test_a_damaged_file_is_refused_and_nothing_changes(
    store: Store, archive: Archive, damage: str
) -> None:
    before = await rows(store.dsn)
    if damage == "a byte":
        flip(archive.path, archive.path)
    else:
        archive.path.write_bytes(
            archive.path.read_bytes()[:-100] if damage == "the end" else b"text"
        )

    with pytest.raises(InvalidInput, match=r"damaged|no complete backup"):
        await restore(store, Archive.read(archive.path))

    assert await rows(store.dsn) == before
    assert await databases_of(store.dsn) == []


@pytest.mark.parametrize(
    "damage", ["encrypted", "a time without a zone", "packed in an unknown way"]
)
async def test_a_file_of_another_form_is_refused(archive: Archive, damage: str) -> None:
    if damage == "a time without a zone":
        other = copy_of(
            archive, manifest_of(archive) | {"created_at": "2026-11-23T08:00:00"}
        )
    else:
        other = archive.path
        content = bytearray(archive.path.read_bytes())
        entry = content.rindex(b"PK\x01\x02")  # that of the manifest
        local = int.from_bytes(content[entry + 42 : entry + 46], "little")
        for place, offset in ((entry, 8), (local, 6)):
            if damage == "encrypted":
                content[place + offset] |= 1
            else:
                content[place + offset + 2 : place + offset + 4] = (99).to_bytes(
                    2, "little"
                )
        archive.path.write_bytes(content)

    with pytest.raises(InvalidInput, match="no complete backup"):
        Archive.read(other)


async def test_a_copy_that_lacks_a_row_or_an_answer_is_not_verified(
    store: Store, archive: Archive
) -> None:
    manifest = manifest_of(archive)
    manifest["contents"]["tables"]["public.memories"]["rows"] += 1
    manifest["contents"]["tables"]["public.embeddings"]["digest"] = "1"
    manifest["contents"]["answers"] = {
        question: [] for question in manifest["contents"]["answers"]
    }
    other = Archive.read(copy_of(archive, manifest))

    with pytest.raises(
        Conflict,
        match=r"rows of public.embeddings; public.memories has 2 rows, not 3; 2 of 2 answers",
    ):
        await verify(store, other)

    assert other.verified_at is None


def copy_of(archive: Archive, manifest: Any) -> Path:
    """Return a copy of a backup with another manifest."""
    path = archive.path.with_name("other.backup")
    with zipfile.ZipFile(archive.path) as source, zipfile.ZipFile(path, "w") as target:
        target.writestr("folklore.dump", source.read("folklore.dump"))
        target.writestr("manifest.json", json.dumps(manifest))
    return path


async def test_a_backup_of_a_newer_version_is_refused(
    store: Store, archive: Archive
) -> None:
    manifest = manifest_of(archive)
    manifest["contents"]["migrations"].append("0999_later.sql")
    with pytest.raises(SchemaAhead, match="0999_later"):
        await restore(store, Archive.read(copy_of(archive, manifest)))
    manifest["folklore_backup"] = 3
    with pytest.raises(InvalidInput, match="newer Folklore"):
        Archive.read(copy_of(archive, manifest))


async def test_a_backup_of_an_early_trial_version_is_refused(
    store: Store, archive: Archive
) -> None:
    manifest = manifest_of(archive)
    manifest["contents"]["migrations"] = ["0001_schema.sql", "0002_packed_postings.sql"]
    with pytest.raises(SchemaBehind, match=r"This backup .* `folklore export"):
        await restore(store, Archive.read(copy_of(archive, manifest)))


async def test_two_restores_at_a_time_exclude_each_other(
    store: Store, archive: Archive
) -> None:
    async with Databases.managed(store.dsn):
        with pytest.raises(Conflict, match="Another process restores"):
            await restore(store, archive)
        with pytest.raises(Conflict, match="Another process restores"):
            await verify(store, archive)
    await verify(store, archive)


@pytest.mark.parametrize(
    "count",
    [
        3,
        pytest.param(
            int(os.environ.get("TEST_RESTORES", "30")),
            marks=pytest.mark.strain,
            id="many",
        ),
    ],
)
async def test_a_killed_restore_leaves_the_old_or_the_new_store(
    folklore: CommandLine, file: Path, database_url: str, tmp_path: Path, count: int
) -> None:
    """Kill restores at random moments of their work; then restore once more, which removes what they left."""
    chance = random.Random(7)
    old = await rows(database_url)
    for number in range(count):
        await folklore.done("store", f"{LATER} Number {number}.")
        new = await rows(database_url)
        process = subprocess.Popen(
            [sys.executable, "-m", "folklore", "restore", file, "--yes"],
            env=os.environ | folklore.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        await asyncio.sleep(chance.uniform(0.8, 3.5))
        process.send_signal(signal.SIGKILL)
        process.wait()
        found = await rows(database_url)
        assert without_jobs(found) in (without_jobs(old), without_jobs(new))
        assert len(archives(tmp_path / "home" / "backups")) <= 3 * (number + 1)
    await folklore.done("restore", file, "-y")
    assert without_jobs(await rows(database_url)) == without_jobs(old)
    assert await databases_of(database_url) == []


def without_jobs(held: dict[str, list[str]]) -> dict[str, list[str]]:
    return {table: rows for table, rows in held.items() if table != "jobs"}


async def test_databases_of_others_with_similar_names_are_left_alone(
    store: Store, archive: Archive
) -> None:
    name = store.dsn.split("?")[0].rsplit("/", 1)[1]
    other = f"{name}_scratch_notes"
    left = f"{name}_scratch_0123abcd"
    connection = await asyncpg.connect(address_of(store.dsn, "postgres"))
    try:
        for database in (other, left):
            await connection.execute(f'create database "{database}"')
        await verify(store, archive)
        assert await databases_of(store.dsn) == [other]
    finally:
        await connection.execute(f'drop database "{other}"')
        await connection.close()


def test_the_names_of_copies_are_cut_alike() -> None:
    for name in ("folklore", "ä" * 31, "x" * 63):
        made = _named(name, "scratch")
        assert len(made.encode()) <= 63
        assert made.startswith(_beginning(name, "scratch"))
        assert len(made) == len(_beginning(name, "scratch")) + 8


async def test_a_restore_is_refused_where_nothing_may_be_written(
    folklore: CommandLine, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOLKLORE_READ_ONLY", "true")

    await folklore.done("backup", file.with_name("two.backup"))
    assert (await folklore("restore", str(file), "--yes")).code == 5


async def test_without_free_space_nothing_is_written(
    store: Store, archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(store.folder)._replace(free=1 << 20)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)

    with pytest.raises(Refused, match=r"has 1 MB free; the backup may need [0-9,]+ MB"):
        await back_up(store)
    with pytest.raises(Refused, match="the copy may need"):
        await verify(Store(store.dsn, store.folder, disk=store.folder), archive)

    assert [found.path for found in archives(store.folder)] == [archive.path]


async def test_only_the_owner_reads_a_backup(store: Store, archive: Archive) -> None:
    assert stat.S_IMODE(archive.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(store.folder.stat().st_mode) == 0o700


async def test_old_backups_are_deleted_but_never_the_last_verified_one(
    person: Person, store: Store
) -> None:
    await person.keep(DEPLOY)
    made = [await back_up(store) for _ in range(5)]
    made[0].mark_verified(made[0].digest())

    assert prune(store.folder, keep=2) == [made[2].path, made[1].path]
    assert [found.path for found in archives(store.folder)] == [
        made[4].path,
        made[3].path,
        made[0].path,
    ]


async def test_refused_restores_push_no_verified_backup_out(
    person: Person, store: Store, tmp_path: Path
) -> None:
    await person.keep(DEPLOY)
    made = [await back_up(store) for _ in range(3)]
    for archive in made:
        archive.mark_verified(archive.digest())
    flip(made[0].path, tmp_path / "damaged.backup")

    with pytest.raises(InvalidInput, match="damaged"):
        await restore(store, Archive.read(tmp_path / "damaged.backup"))
    assert not [
        archive for archive in archives(store.folder) if archive.is_restore_point
    ]

    points = [(await restore(store, made[2])).restore_points[0] for _ in range(4)]
    assert prune(store.folder, keep=3) == [points[0]]
    assert [archive.path for archive in archives(store.folder)][3:] == [
        archive.path for archive in made[::-1]
    ]


async def test_a_file_that_changed_is_verified_no_more(folklore: CommandLine) -> None:
    await folklore.done("store", DEPLOY)
    older, file = [
        Path((await folklore.json("backup", "--verify"))["file"]) for _ in range(2)
    ]
    flip(file, file)

    assert [entry["changed"] for entry in await folklore.json("backups", "list")] == [
        True,
        False,
    ]
    assert "changed since" in await folklore.done("backups", "list")
    assert latest_verified(file.parent) == Archive.read(older)
    assert (await folklore("backups", "verify", str(file))).code == 2
    assert (await folklore.json("backups", "verify", older))["changed"] is False


async def test_a_backup_replaces_no_file(folklore: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "thesis.txt"
    file.write_text("years of work")
    refused = await folklore("backup", str(file))
    assert (refused.code, file.read_text()) == (2, "years of work")
    assert "is not replaced" in refused.err


async def test_the_file_of_a_killed_backup_is_removed_and_never_one_that_is_written(
    store: Store,
) -> None:
    left = store.folder / ".folklore-20261123T080000.000Z.backup.0123abcd.part"
    store.folder.mkdir()
    left.touch()

    async def dump(out: Any) -> None:
        prune(store.folder, keep=1)
        (written,) = store.folder.glob(".*.part")
        assert written != left
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        await write_archive(store.new_path(), dump, None)  # type: ignore[arg-type]

    assert list(store.folder.iterdir()) == []


async def test_a_backup_of_the_first_format_is_verified_by_its_own_digests(
    store: Store, archive: Archive
) -> None:
    async with (moment := Moment(store.dsn)).reading():
        older = await read_contents(moment, whole_rows=True)
    manifest = manifest_of(archive)
    for table, found in older.tables.items():
        manifest["contents"]["tables"][table]["digest"] = found.digest

    with pytest.raises(Conflict, match=r"rows of public\.memories"):
        await verify(store, Archive.read(copy_of(archive, manifest)))
    await verify(
        store, Archive.read(copy_of(archive, manifest | {"folklore_backup": 1}))
    )


def test_a_padded_manifest_takes_little_memory(tmp_path: Path) -> None:
    file = tmp_path / "padded.backup"
    with (
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as out,
        out.open("manifest.json", "w") as member,
    ):
        for _ in range(200):
            member.write(b" " * (1 << 20))

    tracemalloc.start()
    try:
        with pytest.raises(InvalidInput, match="no complete backup"):
            Archive.read(file)
        assert tracemalloc.get_traced_memory()[1] < 100 << 20
    finally:
        tracemalloc.stop()


async def test_the_job_backs_up_verifies_and_prunes(
    jobs: BackgroundJobs, person: Person, store: Store
) -> None:
    async def backed_up() -> Store:
        return store

    jobs.options = JobOptions(pause=0, backed_up=backed_up, backups=2)
    assert await jobs("backup") == {}  # nothing is stored yet
    await person.keep(DEPLOY)
    assert await jobs.dry_run("backup") == {"to_back_up": 1}

    assert await jobs("backup") == {"backed_up": 1, "verified": 1}
    await jobs("backup")
    assert await jobs("backup") == {"backed_up": 1, "verified": 1, "deleted": 1}
    assert all(archive.verified_at for archive in archives(store.folder))


def test_only_the_embedded_engine_is_backed_up_by_itself(tmp_path: Path) -> None:
    def scheduled(**settings: Any) -> bool:
        return (
            BY_NAME["backup"]
            in App(Settings(home=tmp_path, **settings)).scheduler.scheduled
        )

    assert scheduled()
    assert not scheduled(backup={"keep": 0})
    assert not scheduled(database_url="postgresql://user@host/folklore")


async def test_the_commands_list_and_prune_backups(folklore: CommandLine) -> None:
    await folklore.done("store", DEPLOY)
    made = [
        await folklore.json("backup", *options) for options in (["--verify"], [], [])
    ]

    assert [entry["file"] for entry in await folklore.json("backups", "list")] == [
        one["file"] for one in made[::-1]
    ]
    assert made[0]["verified_at"] is not None
    assert (await folklore.json("backups", "prune", "--keep", 1))["deleted"] == [
        made[1]["file"]
    ]
    assert "There is nothing" in await folklore.done("backups", "prune")
    assert (await folklore("restore", "missing.backup", "--yes")).code == 2


async def test_a_restore_asks_first(folklore: CommandLine, file: Path) -> None:
    await folklore.done("store", LATER)

    assert folklore.process("restore", str(file), stdin=b"n\n").code == 1
    silent = folklore.process("restore", str(file))
    assert (silent.code, "--yes: is needed without a terminal." in silent.err) == (
        2,
        True,
    )
    assert LATER in await folklore.done("list")


def test_a_password_is_not_in_the_list_of_processes() -> None:
    address, variables = _without_password(
        "postgresql://me:s%40cret@db.example:5433/folklore?sslmode=require"
    )
    assert address == "postgresql://me@db.example:5433/folklore?sslmode=require"
    assert variables == {"PGPASSWORD": "s@cret"}
    assert (
        _without_password("postgresql:///folklore?host=%2Ftmp")[0]
        == "postgresql:///folklore?host=%2Ftmp"
    )


def test_another_database_of_the_same_server_has_the_same_address_otherwise() -> None:
    assert address_of("postgresql://me@/a?host=%2Ftmp%2Fx&port=5432", "b c") == (
        "postgresql://me@/b%20c?host=%2Ftmp%2Fx&port=5432"
    )
    assert address_of("postgresql://me:pw@h1,h2/a", "b") == "postgresql://me:pw@h1,h2/b"


def test_programs_of_an_unknown_version_are_named_with_their_package() -> None:
    with pytest.raises(NotFound, match="postgresql-client-42"):
        find_programs(42)
    assert {find_programs(major).folder.name for major in (16, 18)} == {"bin"}


async def test_a_server_lists_its_backups_to_the_owner(
    app: App, person: Person, store: Store
) -> None:
    await person.keep("The mole is closed.")
    folder = app.settings.home / "backups"
    first = await back_up(store, folder / "first.backup")
    second = await back_up(store, folder / "second.backup")
    await verify(store, first)
    (folder / "part.backup").write_bytes(b"not complete")

    found = await own_service(app).call(BackupsRequest())

    assert [
        (backup.name, backup.memories, backup.verified_at is not None)
        for backup in found
    ] == [
        ("second.backup", 1, False),
        ("first.backup", 1, True),
    ]
    assert found[0].size == second.size


# Pipes, and encryption by one

AGE = pytest.mark.skipif(
    shutil.which("age") is None, reason="needs age (Debian: apt install age)"
)
CIPHERS = [
    pytest.param("gzip", "gzip -d", id="gzip"),
    pytest.param("age -e -i key", "age -d -i key", id="age", marks=AGE),
]


async def piped(folklore: CommandLine, folder: Path, command: str) -> Ran:
    """Run a line of a shell, in which `folklore` is the command."""
    program = f'folklore() {{ "{sys.executable}" -m folklore "$@"; }}; set -o pipefail'
    if shutil.which("age-keygen") and not (folder / "key").exists():
        subprocess.run(["age-keygen", "-o", folder / "key"], check=True)
    process = await asyncio.create_subprocess_exec(
        "bash", "-c", f"{program}; {command}",
        cwd=folder, env=os.environ | dict(folklore.environment),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    out, err = await process.communicate()
    return Ran(process.returncode or 0, out.decode(), err.decode())


@pytest.mark.parametrize(("cipher", "decipher"), CIPHERS)
async def test_a_backup_goes_through_a_pipe_and_comes_back_through_one(
    folklore: CommandLine, tmp_path: Path, cipher: str, decipher: str
) -> None:
    await folklore.done("store", DEPLOY)

    written = await piped(folklore, tmp_path, f"folklore backup - | {cipher} > one")
    await folklore.done("store", LATER)
    whole = await piped(
        folklore, tmp_path, f"{decipher} < one | folklore backups verify -"
    )
    restored = await piped(
        folklore, tmp_path, f"{decipher} < one | folklore restore - --yes"
    )

    assert (written.code, written.err) == (0, "1 memory backed up to stdout\n")
    assert (whole.code, "is whole" in whole.out) == (0, True), whole.err
    assert (restored.code, "1 memory restored" in restored.out) == (0, True), (
        restored.err
    )
    listed = await folklore.done("list")
    assert (DEPLOY in listed, LATER in listed) == (True, False)
    assert b"PK" not in (tmp_path / "one").read_bytes()[:4]
    assert [file for file in tmp_path.rglob("*piped*") if file.is_file()] == []


@pytest.mark.parametrize(("cipher", "decipher"), CIPHERS)
@pytest.mark.parametrize("damage", ["flip", "cut"])
async def test_a_damaged_backup_from_a_pipe_changes_nothing(
    folklore: CommandLine, tmp_path: Path, cipher: str, decipher: str, damage: str
) -> None:
    await folklore.done("store", DEPLOY)
    await piped(folklore, tmp_path, f"folklore backup - | {cipher} > one")
    content = bytearray((tmp_path / "one").read_bytes())
    if damage == "flip":
        content[len(content) // 2] ^= 1
    else:
        del content[len(content) * 2 // 3 :]
    (tmp_path / "one").write_bytes(content)
    await folklore.done("store", LATER)

    ran = await piped(
        folklore, tmp_path, f"{decipher} < one | folklore restore - --yes"
    )

    assert ran.code == 2
    assert "what the pipe gave" in ran.err
    assert LATER in await folklore.done("list")
    assert [file for file in tmp_path.rglob("*piped*") if file.is_file()] == []


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("folklore backup - --verify > one", "backups verify -"),
        ("folklore backup - --json > one", "--json"),
        ("folklore restore - < /dev/null", "--yes"),
        ("folklore restore - --yes < /dev/null", "no complete backup"),
        ("folklore backups verify - < /dev/null", "no complete backup"),
        (
            "FOLKLORE_BACKUP__KEY=key folklore backup one",
            "backup.key: is no setting any more",
        ),
    ],
)
async def test_what_a_pipe_cannot_do_is_named(
    folklore: CommandLine, tmp_path: Path, command: str, named: str
) -> None:
    ran = await piped(folklore, tmp_path, command)

    assert ran.code == 2
    assert named in ran.err
    assert "age -r" in ran.err or "KEY" not in command


async def test_a_settings_file_of_before_with_no_key_is_read(
    folklore: CommandLine, tmp_path: Path
) -> None:
    (tmp_path / "config.yaml").write_text("backup:\n  keep: 3\n  key:\n")

    ran = await folklore("--config", tmp_path / "config.yaml", "backups", "list")

    assert ran.code == 0, ran.err


async def test_an_encrypted_backup_of_an_earlier_version_names_the_way_to_restore_it(
    folklore: CommandLine, tmp_path: Path, file: Path
) -> None:
    encrypted_before(file, lambda content: content[::-1])

    ran = await folklore("restore", file, "--yes")

    assert ran.code == 2
    assert "was encrypted by an earlier version" in ran.err
    assert "docs/how-to/back-up.md" in ran.err


@AGE
async def test_an_encrypted_backup_of_an_earlier_version_is_restored_as_documented(
    folklore: CommandLine, tmp_path: Path, file: Path
) -> None:
    await piped(folklore, tmp_path, "true")  # makes the key
    key = tmp_path / "key"

    def encrypt(content: bytes) -> bytes:
        command = ["age", "-e", "-i", str(key)]
        return subprocess.run(command, input=content, capture_output=True).stdout

    encrypted_before(file, encrypt)
    await folklore.done("store", LATER)
    text = (ROOT / "docs" / "how-to" / "back-up.md").read_text(encoding="utf-8")
    [commands] = re.findall(
        r"\*\*Encrypted by an earlier version\*\*.*?```sh\n(.*?)```", text, re.DOTALL
    )
    commands = commands.replace("FILE", str(file)).replace("folklore.key", str(key))

    ran = await piped(
        folklore, tmp_path, f"set -e; {commands}".replace("python3", sys.executable)
    )

    assert ran.code == 0, ran.err
    listed = await folklore.done("list")
    assert (DEPLOY in listed, LATER in listed) == (True, False)


def encrypted_before(path: Path, encrypt: Callable[[bytes], bytes]) -> None:
    """Make of a backup what an earlier version wrote with a key."""
    with zipfile.ZipFile(path) as source:
        dump = source.read("folklore.dump")
        manifest = json.loads(source.read("manifest.json"))
    answers = json.dumps(manifest["contents"]["answers"]).encode()
    manifest["contents"]["answers"] = {}
    with zipfile.ZipFile(path, "w") as target:
        target.writestr("folklore.dump.age", encrypt(dump))
        target.writestr("answers.json.age", encrypt(answers))
        target.writestr("manifest.json", json.dumps(manifest | {"encrypted": True}))
