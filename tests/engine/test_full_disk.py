"""A disk that fills up during stores: a clear error, reads that go on, no lost or partial batch, and recovery."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.engine.test_engine import AS_ROOT
from tests.temporary_engine import temporary_home

pytestmark = pytest.mark.strain

# Runs in its own mount namespace, which ends with its file system. Each batch has 200 texts that do not compress.
PROGRAM = """
import asyncio, base64, os, subprocess, sys
from pathlib import Path
from folklore.app import App
from folklore.config import Settings
from folklore.engine import Engine
from folklore.errors import FolkloreError, Unavailable
from folklore.contract.memories import StoreRequest
from folklore.model import Draft
from tests.doors import own_service

home = Path(sys.argv[1])
settings = Settings(
    home=home, namespace="notes", embedding={"provider": "none"}, secrets="off"  # a random text may look like a secret
)

async def batch(app, number):
    texts = [f"batch {number} text {place} {base64.b64encode(os.urandom(3000)).decode()}" for place in range(200)]
    made = await own_service(app).call(StoreRequest(memories=tuple(Draft(text) for text in texts)))
    assert len(made.stored) == 200

async def held(app):
    database = (await app.ready()).database
    async with database.session() as session:
        rows = await session.connection.fetch(
            "select split_part(content, ' ', 2)::int as batch, count(*) from memories group by 1")
    return {row["batch"]: row["count"] for row in rows}

async def main():
    app = App(settings)
    done, number, failure = [], 0, None
    try:
        while failure is None and number < 400:
            number += 1
            try:
                await batch(app, number)
                done.append(number)
            except Unavailable as error:
                failure = error
        print("error:", failure.code, str(failure)[:300])
        print("read:", sum((await held(app)).values()))
        subprocess.run(["mount", "-o", "remount,size=900m", home], check=True)
        async with asyncio.timeout(120):
            while True:
                try:
                    await batch(app, 1000)
                    break
                except FolkloreError:
                    await asyncio.sleep(0.5)
        there = await held(app)
        print("lost:", [one for one in done if there.get(one) != 200])
        print("half:", [one for one, count in there.items() if count != 200])
        print("acknowledged:", len(done) + 1)
    finally:
        await app.close()
        Engine(home).stop()

asyncio.run(main())
"""


@pytest.mark.skipif(not AS_ROOT, reason="only root can make a small file system")
def test_a_full_disk_refuses_writes_loses_none_and_goes_on_reading() -> None:
    with temporary_home() as home:
        home.mkdir(exist_ok=True)
        script = 'mount -t tmpfs -o size=220m none "$1" && exec "$2" -c "$3" "$1"'
        command: list[str | Path] = [
            "unshare",
            "--mount",
            "sh",
            "-c",
            script,
            "sh",
            home,
            sys.executable,
            PROGRAM,
        ]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=300
        )
        if "unshare" in done.stderr or "mount:" in done.stderr:
            pytest.skip(f"no mount namespace here: {done.stderr.strip()}")

    said = dict(line.split(":", 1) for line in done.stdout.splitlines())
    assert (said.get("lost"), said.get("half")) == (" []", " []"), (
        done.stdout + done.stderr[-2000:]
    )
    assert int(said["acknowledged"]) > 0
    assert "disk_full" in said["error"]
    # one batch was stored after there was space
    assert int(said["read"]) == 200 * int(said["acknowledged"]) - 200
