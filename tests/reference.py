"""Reference pages of docs/reference/, made from the code: settings, commands, tools."""

import inspect
import json
import re
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

import click
from mcp.types import Tool

from folklore.cli.main import cli
from folklore.config import Settings
from folklore.mcp import prompts, resources
from folklore.mcp.server import INSTRUCTIONS
from folklore.mcp.tools import TOOLS
from folklore.model import FIELDS
from tests import ROOT

FOLDER = ROOT / "docs" / "reference"

Schema = Mapping[str, Any]

_MADE = "<!-- Made by `make reference` from the code. Do not edit: change the code, then run it again. -->"
_SETTING = re.compile(r"^(?P<indent> *)(?:# )?(?P<name>[a-z_]+):(?P<value>.*)$")
# Meanings of arguments whose schema has no description.
MEANINGS: Mapping[str, str] = {
    "clear": "fields to empty",
    "cursor": "of the former answer: continue it, with the same other arguments",
    "embedding": "the query's vector, in the model that memory_status names",
    "exclude_tags": "without any of these tags",
    "expand": "also memories related to the results, or tagged with their entities",
    "explain": "show the terms of every score, and what each branch did",
    "filters": "only memories that match all of them",
    "filters.author": "only by this author",
    "filters.paths": "only about these files, or about files in these folders",
    "filters.session": "only of this session",
    "filters.tags": "only with these tags",
    "format": "concise: the main fields; detailed: every field; ids: ids only",
    "from": "id of a memory",
    "hops": "longest chain of relations that an expansion follows",
    "least_strength": "least strength of each relation in a chain, 0 to 1",
    "embedding_model": "the active model, of which `embedding` is; another one is an error",
    "id": "id of a memory",
    "idempotency_key": "a repeated request under one key stores nothing twice",
    "ids": "ids of memories",
    "include_superseded": "also superseded memories",
    "faded": "only those that recall leaves out, since they were too little used",
    "namespaces": "default: the project's, others only where clearly better; `*`: all",
    "kinds": "only of these kinds",
    "limit": "most memories in an answer",
    "max_tokens": "keep the answer within this many tokens",
    "mmr_lambda": "factor for each similar text that is ranked higher; 1: no diversity",
    "ranking": "how to weigh and to select",
    "reflections": "include reflections, exclude them, return only them, or move them up to half of their rank",
    "related": "relations of the new memory",
    "relations": "relations to create, change or remove",
    "remove": "remove the relation",
    "since": "only from this time on",
    "sort": "order of the results",
    "source_prefix": "only with a source that begins with this text",
    "as_of": "as it was at this time",
    "strength": "0 to 1",
    "supersede_reason": "the reason, kept in the history of the replaced memory",
    "supersedes": "id of the memory that it replaces",
    "time_zone": "of the times in the filters, such as Europe/Vienna",
    "tag_match": "prefix: area also matches area/payments",
    "tag_mode": "with any of the tags, or with all",
    "tags": "tags, such as area/payments",
    "to": "id of a memory",
    "type": "relates_to, contradicts, derived_from, part_of, depends_on, causes, exemplifies, prefers_over, precedes, "
    "supersedes, or another word",
    "until": "only before this time",
    "query": "words, phrases, or an expression with operators",
}


def pages() -> dict[str, str]:
    """Return the text of every page by its file name."""
    return {
        "settings.md": settings_page(),
        "commands.md": commands_page(),
        "tools.md": tools_page(),
    }


def settings_page() -> str:
    schema = Settings.model_json_schema()
    comments = _comments((ROOT / "config.example.yaml").read_text(encoding="utf-8"))
    sections: dict[str, list[str]] = {}
    for name, setting in _settings(schema, schema["$defs"]):
        default = _value(setting["default"]) if "default" in setting else ""
        row = f"| `{name}` | {_type(setting, schema['$defs'])} | {default} | {_cell(comments[name])} |"
        sections.setdefault(name.partition(".")[0] if "." in name else "", []).append(
            row
        )
    head = "| setting | value | default | meaning |\n|---|---|---|---|"
    tables = [
        (f"## {section}\n\n" if section else "") + "\n".join([head, *rows])
        for section, rows in sections.items()
    ]
    return _page(
        "Settings",
        """
        All settings, with their defaults. Write those that you change into `~/.folklore/config.yaml`, or name another
        file with `--config` or `FOLKLORE_CONFIG`:

        ```yaml
        time_zone: Europe/Vienna
        http:
          port: 9000
          allowed_hosts: [folklore.example.com]
        ```

        Each setting is also an environment variable: `FOLKLORE_` and the name in upper case, with two underscores for a
        dot. Lists are written as JSON:

        ```sh
        export FOLKLORE_TIME_ZONE=Europe/Vienna
        export FOLKLORE_HTTP__PORT=9000
        export FOLKLORE_HTTP__ALLOWED_HOSTS='["folklore.example.com"]'
        ```

        A variable overrides the file, and an option of the command line overrides both. An unknown setting is an error.
        `folklore config show` prints the values in use.
        """,
        *tables,
    )


def _settings(
    schema: Schema, definitions: Schema, prefix: str = ""
) -> Iterator[tuple[str, Schema]]:
    for name, setting in schema["properties"].items():
        section = setting.get("$ref") or next(
            (part["$ref"] for part in setting.get("allOf", ())), None
        )
        if section:
            yield from _settings(
                definitions[section.rpartition("/")[2]], definitions, f"{prefix}{name}."
            )
        else:
            yield prefix + name, setting


def _comments(example: str) -> dict[str, str]:
    """Return the comment above each setting of the example file."""
    found: dict[str, str] = {}
    section = ""
    words: list[str] = []
    for line in example.splitlines():
        setting = _SETTING.match(line)
        if setting and (
            not line.lstrip().startswith("#")
            or setting["name"] in Settings.model_fields
        ):
            nested = bool(setting["indent"])
            if not nested:
                section = setting["name"]
            found[f"{section}.{setting['name']}" if nested else setting["name"]] = (
                " ".join(words)
            )
            words = []
        elif line.lstrip().startswith("#"):
            words.append(line.strip().removeprefix("#").strip())
        else:
            words = []
    return found


def commands_page() -> str:
    context = click.Context(cli, info_name="folklore", max_content_width=110)
    return _page(
        "Commands",
        """
        All commands and their options; `folklore COMMAND --help` shows the same.

        - `--json` prints one JSON document for programs.
        - `--server`, `--token`, `--utc` and `--debug` may also follow the command.
        - An ID is the whole id, its end (at least 4 characters, which one memory has), or the number in the last list
          of this terminal.
        - A text that begins with a dash comes after `--`.
        - Exit codes: 0 done, 1 failed or declined, 2 invalid input (or no such file), 3 unreachable, 4 not found,
          5 refused, 130 interrupted.
        """,
        *_commands(cli, context),
    )


def _commands(command: click.Command, context: click.Context) -> Iterator[str]:
    yield _command(command, context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            part = command.get_command(context, name)
            assert part is not None
            yield from _commands(
                part, click.Context(part, info_name=name, parent=context)
            )


def _command(command: click.Command, context: click.Context) -> str:
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    about = (
        inspect.cleandoc(command.help or "").replace("\b\n", "").replace("<", "&lt;")
    )
    parts = [f"## {context.command_path}", f"```sh\n{usage}\n```", about]
    records = [
        option.get_help_record(context)
        for option in command.params
        if isinstance(option, click.Option)
    ]
    rows = [
        f"| {_code(names)} | {_cell(about)} |"
        for names, about in (record for record in records if record)
    ]
    if rows:
        parts.append("\n".join(["| option | meaning |", "|---|---|", *rows]))
    return "\n\n".join(part for part in parts if part)


def tools_page() -> str:
    templates = [
        (template.uri_template, template.description)
        for template in resources.TEMPLATES
    ]
    listed = [
        (str(resource.uri), resource.description) for resource in resources.RESOURCES
    ] + templates
    return _page(
        "Tools",
        """
        What the server offers to MCP clients: tools, resources, prompts and instructions. `tools: core` in the settings
        offers only the core tools; a read-only server, or a token without the right to write, only those that read.
        """,
        *(_tool(tool.listed, core=tool.core) for tool in TOOLS),
        "## Resources\n\n" + _table("resource", listed),
        "## Prompts\n\n"
        + _table(
            "prompt",
            [(_signature(prompt), prompt.description) for prompt in prompts.PROMPTS],
        ),
        "## Instructions\n\nThe server sends this text to each client, which may show it to its model:\n\n"
        + textwrap.indent(INSTRUCTIONS, "> "),
    )


def _tool(tool: Tool, *, core: bool) -> str:
    annotations = tool.annotations
    assert annotations is not None
    kind = (
        "reads"
        if annotations.read_only_hint
        else "changes"
        if annotations.destructive_hint
        else "adds"
    )
    rows = []
    for name, schema, required in _arguments(tool.input_schema):
        value = _type(schema) + (", required" if required else "")
        default = _value(schema["default"]) if "default" in schema else ""
        rows.append(
            f"| `{name}` | {value} | {default} | {_cell(_meaning(name, schema))} |"
        )
    head = "| argument | value | default | meaning |\n|---|---|---|---|"
    arguments = "\n".join([head, *rows]) if rows else "It takes no arguments."
    result = ", ".join(
        f"`{name}`" for name in (tool.output_schema or {}).get("properties", {})
    )
    about = f"{tool.title} ({kind}{', core' if core else ''}). {tool.description}"
    return f"## {tool.name}\n\n{about}\n\n{arguments}\n\nThe result has: {result}."


def _arguments(schema: Schema, prefix: str = "") -> Iterator[tuple[str, Schema, bool]]:
    """Yield the arguments of a tool with those inside objects and lists: `filters.tags`, `memories[].content`."""
    for name, argument in schema.get("properties", {}).items():
        yield prefix + name, argument, name in schema.get("required", ())
        yield from _arguments(argument, f"{prefix}{name}.")
        yield from _arguments(argument.get("items", {}), f"{prefix}{name}[].")


def _meaning(name: str, schema: Schema) -> str:
    """Return the description of an argument: that of its schema, of the field of the same name, or a longer one here.

    A tool's schema leaves out what its names say, since every session of a client pays for it in tokens.
    """
    last = name.rpartition(".")[2]
    field = FIELDS.get(last)
    described = (
        schema.get("description")
        or MEANINGS.get(name)
        or MEANINGS.get(last)
        or (field.about if field else "")
    )
    return str(described).removesuffix(".")


def _signature(prompt: Any) -> str:
    arguments = [
        one.name if one.required else f"[{one.name}]" for one in prompt.arguments or ()
    ]
    return " ".join([prompt.name, *arguments])


def _type(schema: Schema, definitions: Schema | None = None) -> str:
    """Return the type and limits of a value in words."""
    if "$ref" in schema and definitions:
        return _type(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    if "anyOf" in schema:
        parts = [part for part in schema["anyOf"] if part.get("type") != "null"]
        return " or ".join(_type(part, definitions) for part in parts)
    if "enum" in schema:
        return " / ".join(f"`{value}`" for value in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    name = str(schema.get("type", ""))
    kind = {"string": "text", "array": "list"}.get(name, name)
    if schema.get("format") in ("path", "password"):
        kind = {"path": "path", "password": "secret text"}[schema["format"]]
    items = schema.get("items")
    if items:
        return f"list of {_type(items, definitions)}" + _limits(
            schema.get("minItems"), schema.get("maxItems")
        )
    above = schema.get("exclusiveMinimum")
    limits = _limits(schema.get("minimum"), schema.get("maximum"))
    return kind + (f", above {above}" if above is not None else limits)


def _limits(least: float | None, most: float | None) -> str:
    if least is None and most is None:
        return ""
    if most is None:
        return f", {least} or more"
    return f", at most {most}" if least is None else f", {least} to {most}"


def _value(value: object) -> str:
    if value is None or value in ([], {}, ""):
        return ""
    return f"`{value if isinstance(value, str) else json.dumps(value)}`"


def _table(first: str, rows: list[tuple[str, str | None]]) -> str:
    return "\n".join(
        [
            f"| {first} | meaning |",
            "|---|---|",
            *(f"| `{a}` | {_cell(b or '')} |" for a, b in rows),
        ]
    )


def _code(names: str) -> str:
    return f"`{names}`".replace("|", "\\|")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def _page(title: str, opening: str, *parts: str) -> str:
    text = "\n\n".join([f"# {title}", _MADE, textwrap.dedent(opening).strip(), *parts])
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
