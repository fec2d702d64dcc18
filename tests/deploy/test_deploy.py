"""Files of deploy/: existing settings, existing files, a sandboxed server.

That the wheel serves from an environment of its own is `make package`, which asks the package registry.
"""

import configparser
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from folklore.config import Settings, load_settings
from tests import ROOT
from tests.test_config import every_setting

DEPLOY = ROOT / "deploy"
FILES = sorted(
    path for path in DEPLOY.rglob("*") if path.is_file() and path.suffix != ".env"
)
DOCS = ROOT / "docs" / "how-to" / "deploy.md"


def assignments(path: Path) -> dict[str, str]:
    lines = (
        line
        for line in path.read_text(encoding="utf-8").splitlines()
        if line and not line.startswith("#")
    )
    return dict(line.split("=", 1) for line in lines)


def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(
        (DEPLOY / "compose.yaml").read_text(encoding="utf-8")
    )
    return loaded


def instructions() -> list[tuple[str, str]]:
    """The container file's instructions, lines that go on joined."""
    text = re.sub(
        r"(?m)^\s*#.*\n", "", (DEPLOY / "Containerfile").read_text(encoding="utf-8")
    ).replace("\\\n", " ")
    return [
        (line.split(None, 1)[0], line.split(None, 1)[1])
        for line in text.splitlines()
        if line.strip()
    ]


def unit() -> configparser.ConfigParser:
    read = configparser.ConfigParser(strict=False, interpolation=None)
    read.optionxform = str  # type: ignore[assignment, method-assign]
    read.read(DEPLOY / "folklore.service", encoding="utf-8")
    return read


@pytest.mark.parametrize("path", [*FILES, DOCS], ids=lambda path: path.name)
def test_every_variable_is_a_setting(path: Path) -> None:
    named = set(re.findall(r"\bFOLKLORE_[A-Z0-9_]+", path.read_text(encoding="utf-8")))

    settings = {
        f"FOLKLORE_{name.upper().replace('.', '__')}"
        for name in every_setting(Settings)
    }
    assert named - settings - {"FOLKLORE_CONFIG"} == set()


def test_the_example_of_settings_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in assignments(DEPLOY / "folklore.env.example").items():
        monkeypatch.setenv(name, value)

    settings = load_settings()

    assert settings.http.allowed_hosts == ("memory.example.com",)
    assert settings.log_format == "json"


def test_the_server_uses_the_user_and_the_database_that_the_image_creates() -> None:
    made = assignments(DEPLOY / "database.env.example")
    address = urlsplit(
        assignments(DEPLOY / "folklore.env.example")["FOLKLORE_DATABASE_URL"]
    )

    assert (address.username, address.path) == (
        made["POSTGRES_USER"],
        f"/{made['POSTGRES_DB']}",
    )
    assert address.hostname in compose()["services"]


def test_deployment_files_hold_no_secret_and_secret_files_are_ignored_by_git() -> None:
    assert assignments(DEPLOY / "database.env.example")["POSTGRES_PASSWORD"] == ""
    for service in compose()["services"].values():
        assert (DEPLOY / f"{service['env_file']}.example").exists()
        assert "environment" not in service
    assert (
        "deploy/*.env" in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    )


def test_the_services_of_the_compose_file_refer_to_each_other_correctly() -> None:
    loaded = compose()
    database = loaded["services"]["database"]
    server = loaded["services"]["folklore"]

    assert database["image"].endswith("pgvector/pgvector:pg18")
    assert "pg_isready" in database["healthcheck"]["test"][1]
    assert server["depends_on"] == {"database": {"condition": "service_healthy"}}
    assert (
        DEPLOY / server["build"]["context"] / server["build"]["dockerfile"]
    ).resolve() == DEPLOY / "Containerfile"
    assert all(port.startswith("127.0.0.1:") for port in server["ports"])
    assert "ports" not in database
    assert {
        name.split(":")[0] for one in (database, server) for name in one["volumes"]
    } == loaded["volumes"].keys()
    assert {name for one in (database, server) for name in one["networks"]} == loaded[
        "networks"
    ].keys()
    assert (server["read_only"], server["cap_drop"]) == (True, ["ALL"])


def test_compose_and_the_image_have_the_same_health_check() -> None:
    said = dict(instructions())["HEALTHCHECK"]
    check = compose()["services"]["folklore"]["healthcheck"]
    options, command = said.split(" CMD ")

    assert check.pop("test") == ["CMD", *json.loads(command)]
    written = (option.removeprefix("--").split("=") for option in options.split())
    assert {
        name.replace("_", "-"): str(value) for name, value in check.items()
    } == dict(written)


def test_the_container_file_builds_from_the_wheel_and_runs_as_an_unprivileged_user() -> (
    None
):
    steps = instructions()
    copied = [
        words.split()[:-1]
        for verb, words in steps
        if verb == "COPY" and "--from" not in words
    ]
    last_stage = steps[
        max(place for place, (verb, _) in enumerate(steps) if verb == "FROM") :
    ]

    assert [verb for verb, _ in steps].count("FROM") == 2
    assert all((ROOT / name).exists() for names in copied for name in names)
    kept = (
        (DEPLOY / "Containerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    )
    assert {f"!{name}" for names in copied for name in names} <= set(kept)
    assert any("pip wheel" in words for verb, words in steps if verb == "RUN")
    said = dict(last_stage)
    assert int(said["USER"].split(":")[0]) > 0
    assert "http://127.0.0.1:8765/healthz" in said["HEALTHCHECK"]
    assert (json.loads(said["ENTRYPOINT"]), json.loads(said["CMD"])) == (
        ["folklore"],
        ["serve", "--http"],
    )
    assert "FOLKLORE_HTTP__HOST=0.0.0.0" in said["ENV"]
    assert "FOLKLORE_HTTP__PORT=8765" in said["ENV"]


def test_the_unit_sandboxes_the_server() -> None:
    service = unit()["Service"]

    assert service["ExecStart"].endswith("/folklore serve --http")
    assert service["EnvironmentFile"] == "/etc/folklore/folklore.env"
    for name in (
        "NoNewPrivileges",
        "DynamicUser",
        "ProtectHome",
        "PrivateTmp",
        "PrivateDevices",
    ):
        assert service[name] == "yes"
    assert service["ProtectSystem"] == "strict"
    assert service["CapabilityBoundingSet"] == ""
    environment = dict(word.split("=", 1) for word in service["Environment"].split())
    assert (
        environment["FOLKLORE_HOME"]
        == environment["HOME"]
        == f"/var/lib/{service['StateDirectory']}"
    )
    assert int(service["TimeoutStopSec"]) > 6


def test_the_unit_restarts_the_server_while_the_database_is_unavailable() -> None:
    assert unit()["Unit"]["StartLimitIntervalSec"] == "0"
    assert unit()["Service"]["Restart"] == "on-failure"


def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    text = (DEPLOY / "folklore.service").read_text(encoding="utf-8")
    # It checks that the program exists, which it need not on this machine.
    copy = tmp_path / "folklore.service"
    copy.write_text(
        text.replace("/opt/folklore/bin/folklore", "/bin/true"), encoding="utf-8"
    )

    if program is not None:  # elsewhere the unit has been read above, by us
        done = subprocess.run(
            [program, "verify", str(copy)], capture_output=True, text=True, timeout=60
        )
        assert (done.returncode, done.stderr) == (0, "")
