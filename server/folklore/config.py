"""Settings: read once from flags, the environment and a YAML file into a frozen value.

Rooms receive the values they need, never this object.
"""

from __future__ import annotations

import errno
import ipaddress
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin
from urllib.parse import SplitResult, urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    SecretStr,
    TypeAdapter,
    ValidationError,
    field_validator,
    model_validator,
)

from folklore.errors import ConfigInvalid, field_errors
from folklore.machine import user_name
from folklore.model import Demand, SecretPolicy

# Moments of a session at which hooks give notes.
Moment = Literal["prompt", "edit", "read", "failure", "question", "subagent"]
Provider = Literal["auto", "bundled", "minilm", "openai", "ollama", "fastembed", "none"]

_PREFIX = "FOLKLORE_"
# Least similarity, from 0 to 1, of an unknown variable to a setting for it to count as a misspelling.
_SIMILAR = 0.85
_EXAMPLE = "See `folklore config example`."
# Kubernetes and Docker set variables with such values for services called folklore or folklore-http.
_ORCHESTRATOR_VALUES = ("tcp://", "udp://")


def hosts(address: SplitResult) -> list[tuple[str, int | None]]:
    """Return host (IPv6 without brackets) and port of each host in an address; Postgres takes several.

    Raises ValueError for an invalid host or port.
    """
    parts = address.netloc.rpartition("@")[2].split(",")
    if len(parts) > 1 and "" in parts:
        raise ValueError("a comma without a host")
    addresses = []
    for part in parts:
        host = urlsplit(f"//{part}")
        if host.port == 0:
            raise ValueError("port 0 is not allowed")
        addresses.append((host.hostname or "", host.port))
    return addresses


def known_home() -> Path | None:
    """Return the home folder of the user; None where the system knows none, as for a bare user id in a container."""
    try:
        return Path.home()
    except RuntimeError:
        return None


def user_home(needed_for: str = "") -> Path:
    """Return the home folder of the user. Raises ConfigInvalid where the system knows none."""
    home = known_home()
    if home is not None:
        return home
    unknown = f"cannot be known: HOME is not set, and user id {os.getuid()} is in no list of users"
    if needed_for:
        raise ConfigInvalid("HOME", f"{unknown}; {needed_for} Set HOME to it.")
    raise ConfigInvalid(
        "home", f"{unknown}; set FOLKLORE_HOME to a folder that it may write to."
    )


def expanded(path: Path) -> Path:
    """Return a path with the home folder in place of a leading ~. Raises ConfigInvalid if there is none."""
    try:
        return path.expanduser()
    except RuntimeError:
        if path.parts[0] == "~":
            user_home()
        raise ConfigInvalid(
            str(path), "begins with the name of a user who does not exist."
        ) from None


def _default_home() -> Path:
    return user_home() / ".folklore"


def home_directory(environ: Mapping[str, str]) -> Path:
    """Return the home that the environment names, else the default one. Raises ConfigInvalid without either."""
    path = environ.get("FOLKLORE_HOME", "").strip()
    if path:
        return expanded(Path(path))
    return _default_home()


def _postgres_address(value: SecretStr | None) -> SecretStr | None:
    """Validate an address of a Postgres. The message does not repeat it, because it may hold a password."""
    if value is None:
        return None
    with suppress(ValueError):
        parts = urlsplit(value.get_secret_value())
        if hosts(parts) and parts.scheme in ("postgresql", "postgres"):
            return value
    raise ValueError(
        "is not an address such as postgresql://user:password@host:5432/folklore"
    )


def _server_address(value: str | None) -> str | None:
    if value is None or re.fullmatch(r"https?://[^/\s]+(/\S*)?", value):
        return value
    raise ValueError("must be an address such as https://host:port")


def _lower(value: object) -> object:
    if isinstance(value, str):
        return value.lower()
    return value


def _none_for_blank(value: object) -> object:
    if isinstance(value, str) and not value.strip():
        return None
    return value


def _home_or_default(value: object) -> object:
    return _none_for_blank(value) or _default_home()


def _off_for_false(value: object) -> object:
    # YAML reads a bare off as false.
    return "off" if value is False else value


# `FOLKLORE_DATABASE_URL=` in a shell or compose file means "not set", not "an empty address".
_UNSET = BeforeValidator(_none_for_blank)
_Text = Annotated[str | None, _UNSET]
_Hidden = Annotated[SecretStr | None, _UNSET]
_Address = Annotated[SecretStr | None, _UNSET, AfterValidator(_postgres_address)]


class _Section(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, defer_build=True
    )


def _without_former(values: Any, name: str, reason: str, hint: str) -> Any:
    """Return the values of a section without a former setting, which a settings file may have without a value.

    Raises ConfigInvalid for one with a value.
    """
    key = name.partition(".")[2]
    if not isinstance(values, Mapping) or key not in values:
        return values
    if values[key] not in (None, ""):
        raise ConfigInvalid(name, f"is no setting any more: {reason}.", hint=hint)
    others = dict(values)
    del others[key]
    return others


class EmbeddingSettings(_Section):
    """Model that turns text into vectors."""

    provider: Provider = "auto"
    url: _Text = None
    model: _Text = None
    api_key: _Hidden = None
    dimensions: Annotated[int | None, _UNSET] = Field(None, ge=1, le=4000)
    query_prefix: str | None = None
    document_prefix: str | None = None


class RerankerSettings(_Section):
    """Service that scores question and candidate together; off while no url is set."""

    url: _Text = None
    model: _Text = None
    api_key: _Hidden = None


class RankingSettings(_Section):
    """Rankings of recall by name, each the numbers that differ from the default (docs/ranking.md).

    The application checks their names and ranges.
    """

    presets: dict[
        str, dict[str, float | str | tuple[str, ...] | tuple[float, ...]]
    ] = {}


class DatabaseSettings(_Section):
    """Connections to the database."""

    login_url: _Address = None
    pool_max: int = Field(6, ge=2, le=100)
    statement_cache: bool = True

    @model_validator(mode="before")
    @classmethod
    def _refuse_read_url(cls, values: Any) -> Any:
        """Refuse a former setting: the primary would answer all questions, and nobody would notice."""
        return _without_former(
            values,
            "database.read_url",
            "a standby is read by a server of its own",
            "Remove it, and start a second server with read_only and the standby as database_url "
            "(docs/how-to/postgres.md#standby).",
        )


class EngineSettings(_Section):
    """Embedded Postgres, used while no database_url is set."""

    idle_minutes: float = Field(30.0, ge=0)


class OAuthRule(_Section):
    """A claim that holds `value` gives `grant` (namespace:role, or owner); without both, it lists grants itself."""

    claim: str
    value: str | None = None
    grant: str | None = None

    @model_validator(mode="after")
    def _both_or_neither(self) -> OAuthRule:
        if (self.value is None) != (self.grant is None):
            raise ValueError(
                "value and grant go together; a rule without both takes the grants that the claim lists"
            )
        return self


class OAuthSettings(_Section):
    """Access tokens of one issuer that are accepted over HTTP; off while no issuer is set."""

    issuer: _Text = None
    audience: _Text = None
    jwks_url: _Text = None
    rules: tuple[OAuthRule, ...] = ()


class HttpSettings(_Section):
    """`folklore serve --http`; the limits are constants (server/limits.py)."""

    host: str = "127.0.0.1"
    port: int = Field(8765, ge=0, le=65535)
    allowed_hosts: tuple[str, ...] = ()
    authentication: Demand = "auto"
    workers: int = Field(1, ge=1, le=64)
    tls_cert: Annotated[Path | None, _UNSET] = None
    tls_key: Annotated[Path | None, _UNSET] = None
    trusted_proxies: tuple[str, ...] = ()
    rate_per_minute: int = Field(12_000, ge=0)

    @field_validator("trusted_proxies")
    @classmethod
    def _addresses(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        # uvicorn would take anything else for a name, which no client has: no proxy would be trusted, silently.
        for network in value:
            ipaddress.ip_network(network)
        return value


class JobsSettings(_Section):
    """Background jobs of `folklore serve`."""

    enabled: bool = True
    optional: tuple[Literal["quality", "consolidation"], ...] = ()
    keep_days: float = Field(365.0, ge=0, le=36_500)
    hnsw_from: int = Field(20_000, ge=0, le=1_000_000_000)


class BackupSettings(_Section):
    """Backups of the embedded engine that `folklore serve` makes by itself, and the folder of all backups."""

    keep: int = Field(7, ge=0, le=10_000)
    folder: Annotated[Path | None, _UNSET] = None

    @model_validator(mode="before")
    @classmethod
    def _refuse_key(cls, values: Any) -> Any:
        """Refuse a former setting: backups would no longer be encrypted, and nobody would notice."""
        return _without_former(
            values,
            "backup.key",
            "Folklore encrypts no backups by itself",
            "Remove it, set backup.keep to 0, and run `folklore backup - | age -r KEY > FILE` once a day.",
        )


class Settings(_Section):
    """All settings; `folklore config example` prints each with its default."""

    home: Annotated[Path, BeforeValidator(_home_or_default)] = Field(
        default_factory=_default_home
    )
    database_url: _Address = None
    server: Annotated[_Text, AfterValidator(_server_address)] = None
    token: _Hidden = None
    namespace: _Text = None
    remote: _Text = None
    author: str = Field(default_factory=user_name, min_length=1, max_length=200)
    time_zone: _Text = None
    read_only: bool = False
    moments: tuple[Moment, ...] = get_args(Moment)
    learn_cues: bool = True
    tools: Literal["all", "core"] = "all"
    secrets: Annotated[SecretPolicy, BeforeValidator(_off_for_false)] = "refuse"
    retention_days: float = Field(30.0, ge=0, le=36_500)
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], BeforeValidator(_lower)
    ] = "info"
    log_format: Literal["json", "console"] = "console"
    embedding: EmbeddingSettings = EmbeddingSettings.model_construct()
    reranker: RerankerSettings = RerankerSettings.model_construct()
    ranking: RankingSettings = RankingSettings.model_construct()
    database: DatabaseSettings = DatabaseSettings.model_construct()
    engine: EngineSettings = EngineSettings.model_construct()
    http: HttpSettings = HttpSettings.model_construct()
    oauth: OAuthSettings = OAuthSettings.model_construct()
    jobs: JobsSettings = JobsSettings.model_construct()
    backup: BackupSettings = BackupSettings.model_construct()
    _replaced: dict[str, str] = PrivateAttr(default_factory=dict)

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Settings:
        """Return the settings of these values. Raises ValidationError, and ConfigInvalid for a former setting."""
        carried, replaced = _carried_over(values)
        settings = cls.model_validate(carried)
        settings._replaced.update(replaced)
        return settings

    @property
    def replaced(self) -> Mapping[str, str]:
        """The former settings that were given, each with what to do about it."""
        return self._replaced

    @field_validator("author")
    @classmethod
    def _local(cls, value: str) -> str:
        if not value.isprintable():
            raise ValueError("must be one line without invisible characters")
        # as the principals of an identity provider are named, `subject <issuer>`
        if "://" in value:
            raise ValueError('must not contain "://"')
        return value

    @field_validator("home")
    @classmethod
    def _absolute(cls, value: Path) -> Path:
        return Path(os.path.abspath(expanded(value)))  # noqa: PTH100 - keeps symbolic links as the user wrote them


def config_path(explicit: Path | None, environ: Mapping[str, str]) -> Path | None:
    """Return the settings file: the flag, else FOLKLORE_CONFIG, else config.yaml in the home if it exists."""
    if explicit is not None:
        return explicit
    if variable := environ.get("FOLKLORE_CONFIG"):
        return expanded(Path(variable))
    default = home_directory(environ) / "config.yaml"
    try:
        default.stat()  # from Python 3.14 on, exists() returns false for every error
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            usable = "a shorter path"
        else:
            usable = "a folder that you may enter"
        hint = f"Set FOLKLORE_HOME to {usable}, on a local disk."
        raise ConfigInvalid(
            "home", f"cannot be a directory ({error.strerror}).", hint=hint
        ) from error
    return default


def load_settings(config: Path | None = None, **flags: object) -> Settings:
    """Read the settings: flags override the environment, which overrides the file, each value by itself.

    Raises ConfigInvalid, which names the wrong setting and never repeats its value.
    """
    _reject_misspelled(os.environ)
    values = _read_file(config_path(config, os.environ))
    values = _merged(values, _read_environment(os.environ))
    given_flags = {name: flag for name, flag in flags.items() if flag is not None}
    try:
        return Settings.read(_merged(values, given_flags))
    except ValidationError as error:
        raise _invalid(error) from None


def namespace_of_file(config: Path | None = None) -> str | None:
    """Return the setting `namespace` without that of the environment, which belongs to one process.

    Raises ConfigInvalid as `load_settings` does.
    """
    namespace = _read_file(config_path(config, os.environ)).get("namespace")
    if namespace is None:
        return None
    return Settings(namespace=namespace).namespace


def _read_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings in the environment: FOLKLORE_HTTP__PORT is `port` of `http`. Lists and sections are JSON."""
    values: dict[str, Any] = {}
    # a section before its settings, which override it
    for variable in sorted(environ, key=len):
        path = variable.lower().split("__")
        name = path[0].removeprefix(_PREFIX.lower())
        is_setting = name in Settings.model_fields or name in _FORMER
        if name == path[0] or not is_setting:
            continue
        value = _parsed(name, _type_of(name, path[1:]), environ[variable])
        for part in reversed(path[1:]):
            value = {part: value}
        values = _merged(values, {name: value})
    return values


def _type_of(name: str, path: Sequence[str]) -> Any:
    """Return the type of a setting, or of the first one of `path` in a section."""
    if name in _FORMER:
        return str
    kind: Any = Settings.model_fields[name].annotation
    if path and _is_section(kind):
        inner = kind.model_fields.get(path[0])
        if inner is None:
            return str
        return inner.annotation
    return kind


def _is_section(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, _Section)


def _parsed(name: str, kind: Any, text: str) -> Any:
    if get_origin(kind) not in (tuple, dict) and not _is_section(kind):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        hint = 'Write lists and sections as JSON, e.g. \'["a", "b"]\'.'
        raise ConfigInvalid(
            name, "cannot be read from the environment.", hint=hint
        ) from None


def _merged(values: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, Any]:
    """Return values with others in their place, those of sections each by itself."""
    merged = dict(values)
    for name, other in others.items():
        present = merged.get(name)
        if isinstance(present, dict) and isinstance(other, dict):
            merged[name] = _merged(present, other)
        else:
            merged[name] = other
    return merged


def _moments_of_edit_notes(value: object) -> list[str]:
    """Return the moments that the former setting meant. Raises ConfigInvalid."""
    moments = list(get_args(Moment))
    try:
        with_edits = TypeAdapter(bool).validate_python(value)
    except ValidationError:
        reason = "is a former setting that was true or false; `moments` replaced it."
        hint = f"Write in its place the moments that you want of `moments: {_listed(moments)}`."
        raise ConfigInvalid("edit_notes", reason, hint=hint) from None
    if not with_edits:
        moments.remove("edit")
    return moments


# Settings of earlier versions: the one that replaced each, and the function that gives its value.
_FORMER = {"edit_notes": ("moments", _moments_of_edit_notes)}


def _carried_over(values: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return values with former settings as those of today, and what to do about each former one.

    A setting of today that is given too counts. Raises ConfigInvalid.
    """
    carried = {name: value for name, value in values.items() if name not in _FORMER}
    replaced = {}
    for name in _FORMER.keys() & values.keys():
        today, meaning = _FORMER[name]
        meant = meaning(values[name])
        if today in carried:
            replaced[name] = f"Remove it: `{today}` is set and counts."
        else:
            replaced[name] = f"Write in its place `{today}: {_listed(meant)}`."
            carried[today] = meant
    return carried, replaced


def _listed(values: Sequence[str]) -> str:
    return f"[{', '.join(values)}]"


def _invalid(error: ValidationError) -> ConfigInvalid:
    first, *others = error.errors(
        include_url=False, include_context=False, include_input=False
    )
    name = ".".join(str(part) for part in first["loc"]) or "settings"
    hint = "`folklore config example` prints every setting with its default."
    if first["type"] == "extra_forbidden":
        reason = "is not a setting"
        settings = [setting.replace("__", ".") for setting in _names()]
        similar = get_close_matches(name, settings, 1)
        if similar:
            hint = f"Did you mean {similar[0]}? {hint}"
    else:
        reason = field_errors(error)[0][1].removesuffix(".")
    if others:
        reason += f" ({len(others)} more)"
    return ConfigInvalid(name, f"{reason}.", hint=hint)


def _read_file(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    import yaml

    try:
        loaded = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigInvalid(
            "config", f"{path} cannot be read ({error.strerror})."
        ) from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        reason = f"{path} is not valid YAML{_position(error)}."
        raise ConfigInvalid("config", reason, hint=_EXAMPLE) from error
    if loaded is None:
        return {}
    if isinstance(loaded, dict) and all(isinstance(key, str) for key in loaded):
        return loaded
    raise ConfigInvalid("config", f"{path} must hold settings by name.", hint=_EXAMPLE)


def _position(error: Exception) -> str:
    """Return where the YAML is wrong and in what way, as far as the error says so."""
    mark = getattr(error, "problem_mark", None)
    if not mark:
        return ""
    problem = getattr(error, "problem", "")
    return f": line {mark.line + 1}, column {mark.column + 1}: {problem}"


def _reject_misspelled(environ: Mapping[str, str]) -> None:
    """Raise ConfigInvalid for a variable that is similar to that of a setting.

    Other unknown variables with our prefix are ignored: orchestrators set some for every service called folklore. An
    unknown name in a known section is left to the validation.
    """
    known = [f"{_PREFIX}{name}".upper() for name in _names()]
    for variable, value in environ.items():
        name = variable.upper()
        is_ours = name.startswith(_PREFIX)
        if not is_ours or name in known or value.startswith(_ORCHESTRATOR_VALUES):
            continue
        section, nested, _ = name.partition("__")
        if nested and section in known:
            continue
        similar = get_close_matches(name, known, 1, _SIMILAR)
        if similar:
            hint = f"Did you mean {similar[0]}?"
            raise ConfigInvalid(variable, "is not a setting.", hint=hint)


def _names() -> Iterator[str]:
    """Yield the names of sections and settings as in the environment: `http`, `http__port`."""
    yield "config"
    for name, field in Settings.model_fields.items():
        yield name
        kind: Any = field.annotation
        if _is_section(kind):
            for inner in kind.model_fields:
                yield f"{name}__{inner}"
