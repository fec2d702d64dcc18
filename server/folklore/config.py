"""Settings: read once from YAML and the environment into one frozen value. Rooms receive values, never this object."""

from __future__ import annotations

import getpass
import ipaddress
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from folklore.config_sources import did_you_mean, misspelt, read_file
from folklore.database_url import is_postgres
from folklore.errors import ConfigInvalid
from folklore.model import Demand, SecretPolicy

Provider = Literal["bundled", "openai", "ollama", "fastembed", "none"]


def _whoami() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        return f"uid-{os.getuid()}" if hasattr(os, "getuid") else "unknown"


def _usual_home() -> Path:
    return Path.home() / ".folklore"


def _word(value: object) -> object:
    return "off" if value is False else value  # YAML reads a bare off as false


def _an_address(value: SecretStr | None) -> SecretStr | None:
    """A Postgres address as far as it can be read; the message never repeats it, for it may hold a password."""
    if value is not None and not is_postgres(value.get_secret_value()):
        raise ValueError("is not an address such as postgresql://user:password@host:5432/folklore")
    return value


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


def _or_none(value: object) -> object:
    return None if isinstance(value, str) and not value.strip() else value


# `FOLKLORE_DATABASE_URL=` in a shell or compose file means "not set", not "an empty address".
_UNSET = BeforeValidator(_or_none)
_Text = Annotated[str | None, _UNSET]
_Hidden = Annotated[SecretStr | None, _UNSET]
_Address = Annotated[SecretStr | None, _UNSET, AfterValidator(_an_address)]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class EmbeddingSettings(_Section):
    """Which model turns text into vectors."""

    provider: Provider = "bundled"
    url: _Text = None
    model: _Text = None
    api_key: _Hidden = None
    dimensions: Annotated[int | None, _UNSET] = Field(None, ge=1, le=4000)
    timeout_seconds: float = Field(30.0, gt=0)
    batch_size: int = Field(500, ge=1, le=2048)
    concurrency: int = Field(4, ge=1, le=64)
    query_prefix: str | None = None
    document_prefix: str | None = None
    max_tokens: Annotated[int | None, _UNSET] = Field(None, ge=16, le=1_000_000)
    keys: dict[str, SecretStr] = {}


class RerankerSettings(_Section):
    """A model that reads question and candidate together, over HTTP; off while no url is set."""

    url: _Text = None
    model: _Text = None
    api_key: _Hidden = None
    pool: int = Field(30, ge=1, le=200)
    timeout_seconds: float = Field(5.0, gt=0)


class DatabaseSettings(_Section):
    """How the database is spoken to."""

    login_url: _Address = None
    pool_min: int = Field(2, ge=0, le=100)
    pool_max: int = Field(6, ge=2, le=100)
    connect_timeout_seconds: float = Field(10.0, gt=0)
    statement_timeout_seconds: float = Field(30.0, gt=0)
    statement_cache: bool = True


class EngineSettings(_Section):
    """The embedded Postgres, used when no database_url is set."""

    idle_minutes: float = Field(30.0, ge=0)
    shared_buffers: str = Field("256MB", pattern=r"^\d+(kB|MB|GB)$")


class OAuthRule(_Section):
    """A claim that holds `value` gives `grant` (namespace:role, or owner); without both, it lists grants itself."""

    claim: str
    value: str | None = None
    grant: str | None = None

    @model_validator(mode="after")
    def _both_or_neither(self) -> OAuthRule:
        if (self.value is None) != (self.grant is None):
            raise ValueError("value and grant go together; a rule without both takes the grants that the claim lists")
        return self


class OAuthSettings(_Section):
    """Access tokens of one issuer that are accepted over HTTP; off while no issuer is set."""

    issuer: _Text = None
    audience: _Text = None
    jwks_url: _Text = None
    rules: tuple[OAuthRule, ...] = ()


class HttpSettings(_Section):
    """`folklore serve --http`; the limits are constants (http/limits.py)."""

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
        for one in value:
            ipaddress.ip_network(one)
        return value


class UpkeepSettings(_Section):
    """What is done in the background of `folklore serve`."""

    enabled: bool = True
    usage: bool = True
    usage_days: float = Field(365.0, ge=0, le=36_500)
    audit_days: float = Field(365.0, ge=0, le=36_500)
    quality: bool = False
    consolidation: bool = False
    hnsw_from: int = Field(20_000, ge=0, le=1_000_000_000)


class Settings(BaseSettings):
    """Everything a user may set; `config.example.yaml` shows each with its default."""

    model_config = SettingsConfigDict(
        env_prefix="FOLKLORE_",
        env_nested_delimiter="__",
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        nested_model_default_partial_update=True,
    )

    home: Annotated[Path, BeforeValidator(lambda said: _or_none(said) or _usual_home())] = Field(
        default_factory=_usual_home
    )
    database_url: _Address = None
    server: _Text = Field(None, pattern=r"^https?://[^/\s]+(/\S*)?$")
    token: _Hidden = None
    namespace: _Text = None
    author: str = Field(default_factory=_whoami, min_length=1, max_length=200)
    time_zone: str = "UTC"
    read_only: bool = False
    tools: Literal["all", "core"] = "all"
    secrets: Annotated[SecretPolicy, BeforeValidator(_word)] = "refuse"
    retention_days: float = Field(30.0, ge=0, le=36_500)
    log_level: Annotated[Literal["debug", "info", "warning", "error"], BeforeValidator(_lower)] = "info"
    log_format: Literal["json", "console"] = "console"
    embedding: EmbeddingSettings = EmbeddingSettings()
    reranker: RerankerSettings = RerankerSettings()
    database: DatabaseSettings = DatabaseSettings()
    engine: EngineSettings = EngineSettings()
    http: HttpSettings = HttpSettings()
    oauth: OAuthSettings = OAuthSettings()
    upkeep: UpkeepSettings = UpkeepSettings()

    @field_validator("author")
    @classmethod
    def _local(cls, value: str) -> str:
        if "://" in value:  # as the principals of an identity provider are named, `subject <issuer>`
            raise ValueError('must not contain "://"')
        return value

    @field_validator("home")
    @classmethod
    def _absolute(cls, value: Path) -> Path:
        return Path(os.path.abspath(value.expanduser()))  # noqa: PTH100 - keeps symbolic links as the user wrote them

    def portable(self) -> Settings:
        """The same values as a plain Settings, whichever subclass read them: one that can be pickled for a worker."""
        return Settings.model_construct(**{name: getattr(self, name) for name in Settings.model_fields})


def config_path(explicit: Path | None, environ: Mapping[str, str]) -> Path | None:
    """The settings file in use: the flag, else FOLKLORE_CONFIG, else config.yaml in the home if it is there."""
    if explicit is not None:
        return explicit
    if named := environ.get("FOLKLORE_CONFIG"):
        return Path(named).expanduser()
    home = environ.get("FOLKLORE_HOME", "").strip()
    standard = (Path(home).expanduser() if home else _usual_home()) / "config.yaml"
    try:
        standard.stat()  # exists() says no to every error from Python 3.14 on
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:  # a path that is too long
        hint = "Set FOLKLORE_HOME to a shorter path on a local disk."
        raise ConfigInvalid("home", f"cannot be a directory ({error.strerror}).", hint=hint) from error
    return standard


def load_settings(config: Path | None = None, **flags: object) -> Settings:
    """Read the settings once: flags, then environment, then the file, section by section.

    Raises ConfigInvalid, which names the wrong setting and never repeats its value.
    """
    if wrong := misspelt(os.environ, _variables()):
        raise ConfigInvalid(wrong[0], "is no setting.", hint=f"Did you mean {wrong[1]}?")
    file_values = read_file(config_path(config, os.environ))

    class WithFile(Settings):
        @classmethod
        def settings_customise_sources(
            cls,
            settings_cls: type[BaseSettings],
            init_settings: PydanticBaseSettingsSource,
            env_settings: PydanticBaseSettingsSource,
            dotenv_settings: PydanticBaseSettingsSource,
            file_secret_settings: PydanticBaseSettingsSource,
        ) -> tuple[PydanticBaseSettingsSource, ...]:
            return (init_settings, env_settings, InitSettingsSource(settings_cls, file_values))

    try:
        return WithFile(**_without_unset(flags))
    except SettingsError as error:  # a whole section or list in one variable, not in JSON; only its field is named
        name = next(iter(re.findall(r'field "(\w+)"', str(error))), "settings")
        raise ConfigInvalid(
            name, "cannot be read from the environment.", hint='Write lists and sections as JSON, e.g. \'["a", "b"]\'.'
        ) from None
    except ValidationError as error:
        first, *rest = error.errors(include_url=False, include_context=False, include_input=False)
        name = ".".join(str(part) for part in first["loc"]) or "settings"
        more = f" ({len(rest)} more)" if rest else ""
        unknown = first["type"] == "extra_forbidden"
        said = "is no setting" if unknown else first["msg"]
        meant = did_you_mean(name, _variables()) if unknown else ""
        hint = f"{meant}config.example.yaml shows every setting with its default."
        raise ConfigInvalid(name, f"{said}{more}.", hint=hint) from None


def _variables() -> Iterator[str]:
    yield "config"
    for name, field in Settings.model_fields.items():
        yield name
        if isinstance(field.default, BaseModel):
            yield from (f"{name}__{inner}" for inner in type(field.default).model_fields)


def _without_unset(flags: Mapping[str, object]) -> dict[str, Any]:
    return {name: value for name, value in flags.items() if value is not None}
