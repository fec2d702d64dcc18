"""Settings: precedence of the sources, and errors that name the setting without its value."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from pydantic import BaseModel, SecretStr

from folklore.config import Moment, Settings, config_path, load_settings
from folklore.db.database import Database
from folklore.errors import ConfigInvalid
from tests import ROOT

EXAMPLE = ROOT / "config.example.yaml"
SECRET = "postgresql://alice:hunter2-secret@db.example.org/folklore"


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Return a home without settings; FOLKLORE_HOME is unset."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("FOLKLORE_HOME", "FOLKLORE_EMBEDDING__PROVIDER"):
        monkeypatch.delenv(name)
    return tmp_path


def written(folder: Path, text: str) -> Path:
    path = folder / "settings.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_flags_override_the_environment_which_overrides_the_file(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = written(
        home,
        "namespace: file\nauthor: file\ntime_zone: Europe/Vienna\nhttp: {port: 1, host: localhost}\n",
    )
    monkeypatch.setenv("FOLKLORE_NAMESPACE", "environment")
    monkeypatch.setenv("FOLKLORE_AUTHOR", "environment")
    monkeypatch.setenv("FOLKLORE_HTTP__PORT", "2")

    settings = load_settings(file, author="flag", read_only=None)

    assert (settings.author, settings.namespace, settings.time_zone) == (
        "flag",
        "environment",
        "Europe/Vienna",
    )
    assert (settings.http.port, settings.http.host) == (2, "localhost")
    assert settings.read_only is False


def test_a_home_with_too_long_a_path_is_reported_as_the_wrong_setting(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOLKLORE_HOME", str(home / ("long" * 80)))

    with pytest.raises(
        ConfigInvalid, match=r"home: .*File name too long.*FOLKLORE_HOME"
    ):
        load_settings()


def test_the_file_of_the_flag_precedes_that_of_the_variable_and_of_the_home(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert config_path(None, {}) is None

    standard = home / ".folklore" / "config.yaml"
    standard.parent.mkdir()
    standard.write_text("namespace: standard", encoding="utf-8")
    elsewhere = home / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "config.yaml").write_text("namespace: elsewhere", encoding="utf-8")

    assert load_settings().namespace == "standard"
    monkeypatch.setenv("FOLKLORE_HOME", str(elsewhere))
    assert load_settings().namespace == "elsewhere"
    monkeypatch.setenv("FOLKLORE_CONFIG", str(standard))
    assert load_settings().namespace == "standard"
    assert load_settings(written(home, "namespace: flag")).namespace == "flag"


def test_the_defaults_are_the_engine_the_bundled_model_and_the_loopback_address(
    home: Path,
) -> None:
    settings = load_settings()

    assert settings.home == home / ".folklore"
    assert settings.database_url is None
    assert settings.embedding.provider == "auto"
    assert settings.http.host == "127.0.0.1"
    assert settings.author


BLANK = [
    "EMBEDDING__URL", "EMBEDDING__MODEL", "EMBEDDING__API_KEY", "EMBEDDING__DIMENSIONS",
    "RERANKER__URL", "RERANKER__MODEL", "RERANKER__API_KEY", "DATABASE__LOGIN_URL", "HTTP__TLS_CERT", "HTTP__TLS_KEY",
    "OAUTH__ISSUER", "OAUTH__AUDIENCE", "OAUTH__JWKS_URL", "SERVER", "TOKEN", "HOME", "DATABASE_URL", "NAMESPACE",
]  # fmt: skip


@pytest.mark.parametrize("name", BLANK)
def test_a_blank_variable_means_unset(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    usual = load_settings()

    for blank in ("", " ", "\t"):
        monkeypatch.setenv(f"FOLKLORE_{name}", blank)
        assert load_settings() == usual


def test_an_empty_prefix_in_the_file_is_kept(home: Path) -> None:
    assert (
        load_settings(
            written(home, "embedding: {query_prefix: ''}")
        ).embedding.query_prefix
        == ""
    )


RIGHT = (
    "postgresql://a:5432,b:5433/db?target_session_attrs=read-write", "postgres://a,b,c:5433/db",
    "postgresql://sarah:hunter2@[::1]:5432,[::2]:5433,b/db", "postgresql:///db?host=/tmp&port=5433",
)  # fmt: skip


@pytest.mark.parametrize("address", RIGHT)
def test_an_address_may_name_several_hosts(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("FOLKLORE_DATABASE_URL", address)

    assert load_settings().database_url == SecretStr(address)


WRONG = (
    "localhost", "mysql://hunter2@host/folklore", "postgresql://hunter2@host:many/x",
    "postgresql://hunter2@a:5432,b:many/x", "postgresql://hunter2@a:5432,b:0/x", "postgresql://hunter2@a:5432,/x",
)  # fmt: skip


@pytest.mark.parametrize("address", WRONG)
def test_an_invalid_address_is_reported_without_its_value(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("FOLKLORE_DATABASE_URL", address)

    with pytest.raises(
        ConfigInvalid, match="is not an address such as postgresql://"
    ) as refusal:
        load_settings()

    assert refusal.value.field == "database_url"
    assert "hunter2" not in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("http: {port: many}", "http.port"),
        ("http: {1: 2}", "http.1"),
        ("http: {port: 70000}", "http.port"),
        ("http: 8765", "http"),
        ("embedding: {provider: hunter2-secret}", "embedding.provider"),
        ("database: {pool_max: 1}", "database.pool_max"),
        ("log_level: hunter2-secret", "log_level"),
        ("read_only: hunter2-secret", "read_only"),
        ("author: ''", "author"),
        ("engine: {idle_minutes: -1}", "engine.idle_minutes"),
    ],
)
def test_a_wrong_or_unknown_setting_is_reported_by_name(
    home: Path, text: str, named: str
) -> None:
    with pytest.raises(ConfigInvalid) as refusal:
        load_settings(written(home, text))

    assert refusal.value.field == named
    assert "folklore config example" in str(refusal.value)
    assert "hunter2" not in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "http: {prot: 1}",
            "http.prot: is not a setting. Did you mean http.port? `folklore config",
        ),
        (
            "databse_url: x",
            "databse_url: is not a setting. Did you mean database_url? `folklore config",
        ),
        ("zzz: 1\nqqq: 1\nxxx: 1", "zzz: is not a setting (2 more). `folklore config"),
    ],
)
def test_an_unknown_name_in_the_file_is_reported_with_a_suggestion(
    home: Path, text: str, message: str
) -> None:
    with pytest.raises(ConfigInvalid) as refusal:
        load_settings(written(home, text))

    assert str(refusal.value).startswith(message)


EVERY_MOMENT = get_args(Moment)
WITHOUT_EDITS = ("prompt", "read", "failure", "question", "subagent")


@pytest.mark.parametrize(
    ("text", "variable", "moments", "advice"),
    [
        ("edit_notes: false", None, WITHOUT_EDITS, "moments: [prompt, read, failure,"),
        ("edit_notes: off", None, WITHOUT_EDITS, "moments: [prompt, read, failure,"),
        ("edit_notes: true", None, EVERY_MOMENT, "moments: [prompt, edit, read, "),
        ("", "false", WITHOUT_EDITS, "moments: [prompt, read, failure, question"),
        ("edit_notes: true", "0", WITHOUT_EDITS, "moments: [prompt, read, failure,"),
        ("edit_notes: false\nmoments: [edit]", None, ("edit",), "Remove it: `moments`"),
    ],
)
def test_a_former_setting_is_read_as_what_it_meant_and_says_what_replaced_it(
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    variable: str | None,
    moments: tuple[str, ...],
    advice: str,
) -> None:
    if variable is not None:
        monkeypatch.setenv("FOLKLORE_EDIT_NOTES", variable)

    settings = load_settings(written(home, text))

    assert settings.moments == moments
    assert advice in settings.replaced["edit_notes"]


def test_a_former_setting_of_no_meaning_names_the_one_that_replaced_it(
    home: Path,
) -> None:
    with pytest.raises(ConfigInvalid, match=r"edit_notes: .*`moments` replaced it"):
        load_settings(written(home, "edit_notes: sometimes"))


def test_a_command_says_once_what_replaced_a_former_setting(home: Path) -> None:
    path = written(home, "edit_notes: false")
    command = [
        sys.executable,
        "-m",
        "folklore",
        "--config",
        str(path),
        "config",
        "show",
    ]

    ran = subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=True
    )

    assert "edit_notes" not in ran.stdout
    assert ran.stderr.count("edit_notes") == 1
    assert "moments: [prompt, read" in ran.stderr


def test_variables_of_orchestrators_are_ignored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in (
        ("FOLKLORE_PORT", "tcp://10.0.0.7:8765"), ("FOLKLORE_HTTP_PORT", "tcp://10.0.0.7:8765"),
        ("FOLKLORE_SERVICE_HOST", "10.0.0.7"), ("FOLKLORE_SERVICE_PORT", "8765"),
        ("FOLKLORE_PORT_8765_TCP_PROTO", "tcp"), ("FOLKLORE_CONFIG_MAP_VERSION", "7"),
    ):  # fmt: skip
        monkeypatch.setenv(name, value)

    assert load_settings().read_only is False


@pytest.mark.parametrize(
    ("name", "value", "named"),
    [
        ("FOLKLORE_HTTP__PORT", "hunter2-secret", "http.port"),
        ("FOLKLORE_EMBEDDING__DIMENSIONS", "hunter2-secret", "embedding.dimensions"),
        ("FOLKLORE_HTTP__PROT", "1", "http.prot"),
        ("FOLKLORE_TOOLS", "some", "tools"),
        (
            "FOLKLORE_DATABASE__LOGIN_URL",
            "postgresql://me:hunter2@host:54x32/folklore",
            "database.login_url",
        ),
        ("FOLKLORE_EMBEDDING", "hunter2-secret", "embedding"),
        ("FOLKLORE_HTTP__ALLOWED_HOSTS", "hunter2-secret", "http"),
        (
            "FOLKLORE_READONLY",
            "hunter2-secret",
            "FOLKLORE_READONLY: Did you mean FOLKLORE_READ_ONLY?",
        ),
        (
            "FOLKLORE_HTTP_PORT",
            "hunter2-secret",
            "FOLKLORE_HTTP_PORT: Did you mean FOLKLORE_HTTP__PORT?",
        ),
        (
            "FOLKLORE_HTP__PORT",
            "hunter2-secret",
            "FOLKLORE_HTP__PORT: Did you mean FOLKLORE_HTTP__PORT?",
        ),
        (
            "folklore_databaseurl",
            "hunter2-secret",
            "folklore_databaseurl: Did you mean FOLKLORE_DATABASE_URL?",
        ),
    ],
)
def test_a_wrong_or_misspelled_variable_is_reported_by_name(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, named: str
) -> None:
    monkeypatch.setenv(name, value)

    with pytest.raises(ConfigInvalid) as refusal:
        load_settings()

    field, _, suggestion = named.partition(": ")
    assert refusal.value.field == field
    assert suggestion in str(refusal.value)
    assert "hunter2" not in str(refusal.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a: 1\nb:\t- 2", "is not valid YAML: line 2, column 3: found character"),
        (b"a: \xff\xfe", "is not valid YAML"),
        (b"home: " + b"[" * 5_000, "is not valid YAML"),
        (b"!!python/object/apply:os.system ['true']", "is not valid YAML"),
        (b"- a\n- b\n", "must hold settings by name"),
        (b"just text", "must hold settings by name"),
        (b"1: 2", "must hold settings by name"),
    ],
)
def test_an_invalid_file_is_reported_with_the_reason(
    home: Path, content: bytes, message: str
) -> None:
    path = home / "broken.yaml"
    path.write_bytes(content)

    with pytest.raises(ConfigInvalid, match=message):
        load_settings(path)


def test_an_empty_file_is_valid_and_a_missing_one_an_error(home: Path) -> None:
    assert load_settings(written(home, "# nothing yet\n")).namespace is None
    with pytest.raises(ConfigInvalid, match=r"missing\.yaml cannot be read"):
        load_settings(home / "missing.yaml")
    with pytest.raises(ConfigInvalid, match="cannot be read"):
        load_settings(home)


def test_secrets_are_never_shown(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLKLORE_DATABASE_URL", SECRET)
    settings = load_settings(written(home, "embedding: {api_key: sk-hunter2}"))

    shown = [
        str(settings),
        settings.model_dump_json(),
        *map(repr, (settings, settings.embedding, Database(SECRET))),
    ]
    assert not any("hunter2" in text for text in shown)
    assert settings.database_url is not None
    assert settings.database_url.get_secret_value() == SECRET


def test_paths_become_absolute_and_a_tilde_is_expanded(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)

    assert load_settings(written(home, "home: ~/there")).home == home / "there"
    assert load_settings(written(home, "home: here")).home == home / "here"


def every_setting(model: type[BaseModel], before: str = "") -> dict[str, Any]:
    """Return the dotted names of all settings with their defaults."""
    found: dict[str, Any] = {}
    for name, field in model.model_fields.items():
        default = field.get_default(call_default_factory=True, validated_data={})
        if isinstance(default, BaseModel):
            found |= every_setting(type(default), f"{before}{name}.")
        else:
            found[before + name] = default
    return found


def test_the_example_names_every_setting_with_its_default_and_why(home: Path) -> None:
    # Settings whose default depends on the user are comments in the example.
    depends = {"home", "author"}
    lines = EXAMPLE.read_text(encoding="utf-8").splitlines()
    example = yaml.safe_load("\n".join(lines))

    documented = {
        name if not isinstance(entry, dict) else f"{name}.{inner}": value
        for name, entry in example.items()
        for inner, value in (
            entry.items() if isinstance(entry, dict) else [("", entry)]
        )
    }
    expected = {
        name: json.loads(json.dumps(default, default=str))
        for name, default in every_setting(Settings).items()
        if name not in depends
    }
    assert documented == expected
    for name in depends:
        assert any(line.startswith(f"# {name}:") for line in lines), name
    sections = {name for name, entry in example.items() if isinstance(entry, dict)}
    for number, line in enumerate(lines):
        if (
            ":" in line
            and not line.lstrip().startswith("#")
            and line.removesuffix(":") not in sections
        ):
            assert lines[number - 1].lstrip().startswith("#"), (
                f"no comment above: {line}"
            )


def test_the_example_has_the_values_of_the_defaults(home: Path) -> None:
    assert load_settings(EXAMPLE).model_dump() == load_settings().model_dump()


def test_a_bare_off_in_yaml_is_accepted(home: Path) -> None:
    assert load_settings(written(home, "secrets: off")).secrets == "off"


def test_there_are_at_most_52_settings() -> None:
    """A further setting needs a reason, and another one that goes."""
    defaults = [field.default for field in Settings.model_fields.values()]
    sections = [
        type(default).model_fields
        for default in defaults
        if isinstance(default, BaseModel)
    ]

    assert len(defaults) - len(sections) + sum(map(len, sections)) <= 52
