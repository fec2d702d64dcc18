"""`folklore config` and `folklore completion`."""

import os
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit, urlunsplit

import click
import yaml
from click.shell_completion import get_completion_class

import folklore
from folklore.cli.context import settings_of
from folklore.cli.options import context_and_json
from folklore.cli.output import print_either, print_line, wants_json
from folklore.config import Settings, config_path, home_directory, hosts

_MASK = "********"
# Parameters of an address that hold no secret.
_HARMLESS = frozenset(
    {
        "host",
        "port",
        "dbname",
        "database",
        "sslmode",
        "application_name",
        "target_session_attrs",
    }
)

config = click.Group(
    "config",
    help="Show the settings in use: flags override the environment, which overrides the file.",
)


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the program that completes commands and options in SHELL.

    For bash, add to ~/.bashrc: eval "$(folklore completion bash)"; for zsh, to ~/.zshrc: eval "$(folklore completion
    zsh)"; for fish: folklore completion fish > ~/.config/fish/completions/folklore.fish
    """
    complete = get_completion_class(shell)
    assert complete is not None
    print_line(
        complete(ctx.find_root().command, {}, "folklore", "_FOLKLORE_COMPLETE").source()
    )


@config.command()
@context_and_json
def show(ctx: click.Context) -> None:
    """Show every setting, secrets masked, as a settings file would hold it."""
    value = shown(settings_of(ctx))
    print_either(
        value, yaml.safe_dump(value, sort_keys=False, allow_unicode=True).rstrip()
    )


@config.command()
@context_and_json
def path(ctx: click.Context) -> None:
    """Print the path of the settings file, existing or not."""
    root = ctx.find_root().obj
    home = root["flags"]["home"]
    environ = dict(os.environ)
    if home:
        environ["FOLKLORE_HOME"] = str(home)
    standard = home_directory(environ) / "config.yaml"
    file = config_path(root["config"], environ) or standard
    print_either({"path": str(file), "exists": file.exists()}, str(file))
    if not wants_json() and not file.exists():
        click.echo(
            "There is no such file yet; `folklore config example` prints one.", err=True
        )


@config.command()
def example() -> None:
    """Print a settings file with every setting, its default and its meaning."""
    package = Path(folklore.__file__)
    file = package.with_name("config.example.yaml")
    if not file.exists():  # in a checkout
        file = package.parents[2] / "config.example.yaml"
    print_line(file.read_text(encoding="utf-8").rstrip())


def shown(settings: Settings) -> dict[str, Any]:
    """Return every setting as plain values, secrets masked."""
    value: dict[str, Any] = settings.model_dump(mode="json")
    if settings.database_url is not None:
        value["database_url"] = masked(settings.database_url.get_secret_value())
    if settings.embedding.api_key is not None:
        value["embedding"]["api_key"] = _MASK
    # an address may hold a password or key
    for section in (value, value["embedding"], value["reranker"]):
        for name in ("server", "url"):
            if section.get(name):
                section[name] = masked(section[name])
    return value


def masked(url: str) -> str:
    """Return an address without its password and without parameters that may hold another secret."""
    try:
        parts = urlsplit(url)
        where = ",".join(_host(host, port) for host, port in hosts(parts))
        query = parse_qsl(parts.query, keep_blank_values=True)
    except ValueError:
        return _MASK
    if not parts.scheme:
        return _MASK
    if parts.username and parts.password:
        where = f"{parts.username}:{_MASK}@{where}"
    elif parts.username:
        where = f"{parts.username}@{where}"
    parameters = []
    for name, value in query:
        parameters.append(f"{name}={value if name in _HARMLESS else _MASK}")
    return urlunsplit((parts.scheme, where, parts.path, "&".join(parameters), ""))


def _host(host: str, port: int | None) -> str:
    address = f"[{host}]" if ":" in host else host
    return f"{address}:{port}" if port else address
