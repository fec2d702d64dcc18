"""docs/features.md accounts for every capability of the systems before; what it names is there, or is missing."""

import re
from dataclasses import dataclass
from typing import Any

import click
import pytest
from mcp.types import Tool

from folklore.app import App
from folklore.cli.main import cli
from folklore.config import Settings
from folklore.contract.recall import RankingRequest
from folklore.mcp.server import build_server
from folklore.ranking.weights import SCALES, SIGNALS, Ranking
from folklore.server.application.app import build_app
from folklore.server.listener import by_token
from tests import ROOT
from tests.conftest import connected
from tests.mcp.test_tools_list import service_of
from tests.test_config import every_setting

ROOMS = ROOT / "server" / "folklore"
STATES = ("works", "partly", "not yet")


@dataclass(frozen=True, slots=True)
class Feature:
    """One row of the table."""

    number: str
    capability: str
    origin: str
    state: str
    where: str

    @property
    def places(self) -> list[str]:
        """What it names as being there."""
        return re.findall(r"`([^`]+)`", self.where)

    @property
    def missing(self) -> list[str]:
        """What it names as not being there."""
        return re.findall(r"`([^`]+)`", self.state)


def table() -> list[Feature]:
    lines = (ROOT / "docs" / "features.md").read_text(encoding="utf-8").splitlines()
    rows = [
        [cell.strip() for cell in line[1:-1].split(" | ")]
        for line in lines
        if line.startswith("|")
    ]
    return [Feature(*row) for row in rows[2:]]


FEATURES = table()


@dataclass(frozen=True, slots=True)
class Product:
    """What of the product can be named in the table."""

    tools: dict[str, Tool]
    resources: set[str]
    routes: set[str]
    settings: set[str]

    def has(self, name: str) -> bool:
        """Whether it is there. Fails for a name that is of no kind known here."""
        if name.startswith("folklore "):
            return has_command(name.split()[1:])
        if name.startswith("GET "):
            return name.removeprefix("GET ") in self.routes
        if name.startswith("memory://"):
            return name in self.resources
        if name.endswith((".py", ".sql", ".md")):
            in_root = name.startswith(("docs/", "import/", "schema.sql"))
            return ((ROOT if in_root else ROOMS) / name).is_file()
        assert re.fullmatch(r"[a-z_]+(\.[a-z_]+)*(=\w+)?", name), (
            f"{name!r} is neither a place nor a setting"
        )
        tool, *arguments = name.partition("=")[0].split(".")
        if tool.startswith(("memory_", "search_")):
            return tool in self.tools and has_argument(
                self.tools[tool].input_schema, arguments, name.partition("=")[2]
            )
        return name in self.settings


def has_argument(schema: dict[str, Any], path: list[str], value: str) -> bool:
    """Whether a dotted argument is in a tool's schema, and may have that value."""
    for part in path:
        schema = schema.get("items", schema).get("properties", {}).get(part)
        if schema is None:
            return False
    return not value or value in (
        schema.get("enum") or schema.get("items", {}).get("enum", ())
    )


def has_command(words: list[str]) -> bool:
    """Whether a command is in the tree, with its option and that option's value."""
    command: click.Command | None = cli
    while words and not words[0].startswith("-"):
        if not isinstance(command, click.Group):
            return False
        command = command.get_command(click.Context(command), words.pop(0))
    if command is None:
        return False
    options = [
        option
        for option in command.params
        if words and words[0] in (*option.opts, *option.secondary_opts)
    ]
    if not words or not options:
        return not words
    kind = options[0].type
    return (
        len(words) == 1
        or not isinstance(kind, click.Choice)
        or words[1] in kind.choices
    )


@pytest.fixture(scope="module")
async def product() -> Product:
    async with connected(build_server(service_of())) as client:
        listed = (await client.list_tools()).tools
        resources = {str(one.uri) for one in (await client.list_resources()).resources}
        templates = {
            one.uri_template
            for one in (await client.list_resource_templates()).resource_templates
        }
    routes = {
        getattr(route, "path", "")
        for area in build_app(App(Settings()), by_token("127.0.0.1")).routes
        for route in getattr(area, "routes", ())
    }
    return Product(
        {tool.name: tool for tool in listed},
        resources | templates,
        routes,
        set(every_setting(Settings)),
    )


def test_every_row_is_there_once_and_in_order() -> None:
    numbers = [int(feature.number) for feature in FEATURES]
    assert numbers[:46] == list(range(1, 47))
    assert numbers == sorted(set(numbers))
    assert all(feature.capability and feature.origin for feature in FEATURES)


@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature.number)
def test_a_row_works_or_says_what_is_missing(feature: Feature) -> None:
    state, _, missing = feature.state.partition(": ")

    assert state in STATES
    assert bool(missing) is (state != "works")
    assert feature.places or state == "not yet", (
        "a row that works, in part or whole, says where"
    )


@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature.number)
async def test_what_a_row_names_is_there(feature: Feature, product: Product) -> None:
    assert [name for name in feature.places if not product.has(name)] == []


@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature.number)
async def test_what_a_row_misses_is_not_there(
    feature: Feature, product: Product
) -> None:
    assert [name for name in feature.missing if product.has(name)] == [], (
        "it is there now: say so in docs/features.md"
    )


@pytest.mark.parametrize(
    "name",
    ["memory_recall.ranking.rrf_q", "memory_recall.ranking.preset=best", "memory_repair", "folklore repair",
     "folklore recall --better", "folklore db start now", "folklore import --format docx", "jobs.repair",
     "GET /repair", "memory://repair", "ranking/repair.py"],
)  # fmt: skip
async def test_what_is_not_there_is_noticed(name: str, product: Product) -> None:
    assert not product.has(name)


def test_the_documentation_lists_the_numbers_of_a_recall_with_their_defaults(
    product: Product,
) -> None:
    text = (ROOT / "docs" / "how-to" / "recall.md").read_text(encoding="utf-8")
    told = dict(re.findall(r"^\| `([\w.]+)` \| (\S+) \|", text, re.MULTILINE))
    ranking = Ranking()
    weights = {name: getattr(ranking, name) for name in (*SCALES, "relations")}
    weights |= {name: getattr(ranking.signals, name) for name in SIGNALS}
    real = {f"weights.{name}": weight for name, weight in weights.items()}
    real |= {name: getattr(ranking, name) for name in ("mmr_lambda", "min_score")}
    real["reflections"] = RankingRequest().reflections

    assert told == {name: str(value).lower() for name, value in real.items()}
