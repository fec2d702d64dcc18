"""SQL files: read with their includes, numbered parameters, and the rules that keep them fit for a cluster."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import asyncpg
import pytest

from folklore.db.migrate import migrations
from folklore.db.sql_loader import statement
from tests.conftest import Cluster
from tests.test_schema import SMALL

SQL = Path(str(files("folklore.db"))) / "sql"
FILES = sorted(path.relative_to(SQL).with_suffix("").as_posix() for path in SQL.rglob("*.sql"))
TEMPLATES = frozenset({"roles/begin_as_token", "backup/content", "backup/create_database"})  # filled in by the code
STATEMENTS = [name for name in FILES if not name.startswith("fragments/") and name not in TEMPLATES]
VARIANTS = [
    "recall/dense:plain", "recall/keyword:plain", "recall/keyword:stems", "recall/keyword:stems:plain",
    "recall/pool:no_vectors", "recall/pool:no_vectors:plain", "recall/pool:plain", "recall/expression:token",
    "recall/dense:as_of", "recall/keyword:as_of", "recall/keyword:stems:as_of", "recall/pool:as_of",
    "recall/pool:no_vectors:as_of", "recall/expression:as_of", "recall/expression:token:as_of", "recall/expand:as_of",
    "memories/list:as_of", "memories/match:as_of", "activity/attention:no_vectors",
]  # fmt: skip
SIZED = frozenset({"recall/nearest"})  # a number of dimensions follows their name
COMPLETE = [f"{name}:256" if name in SIZED else name for name in STATEMENTS]

DATA_TABLES = sorted(
    {table for migration in migrations() for table in re.findall(r"^create table (\w+)", migration.sql, re.MULTILINE)}
    - SMALL
)

# Statements that enter a data table by something else than its namespace, and why they may.
EXEMPT = {
    "backup/answers": "reads all namespaces for a backup of them",
    "server/analyze": "tells the planner about whole tables, and reads nothing for anybody",
    "namespaces/find": "asks each row of namespaces, a small table that is on every node, whether it holds anything",
    "embeddings/index_changes": "counts the vectors of each row of namespaces, a small table that is on every node",
    "namespaces/status": "counts the memories of each row of namespaces, a small table that is on every node",
    "namespaces/list": "counts the memories of each row of namespaces, a small table that is on every node",
}

_COMMENT = re.compile(r"--[^\n]*")
_LITERAL = re.compile(r"'(?:[^']|'')*'")
_ENTRY = re.compile(
    rf"\b(?:from|join|update|into|,)\s+(?P<table>{'|'.join(DATA_TABLES)})\b"
    r"(?:\s+(?:as\s+)?(?!on\b|where\b|join\b|set\b|left\b|cross\b|order\b|group\b|limit\b|using\b)(?P<alias>[a-z_]\w*))?"
)


def source(name: str) -> str:
    """The file with its includes, without comments and literals."""

    def included(match: re.Match[str]) -> str:
        return source(match[1] if "/" in match[1] else f"fragments/{match[1]}")

    text = (SQL / f"{name}.sql").read_text(encoding="utf-8")
    text = re.sub(r"^[ \t]*-- include ([\w/]+)$", included, text, flags=re.MULTILINE)
    return _LITERAL.sub("''", _COMMENT.sub("", text))


def unbound(sql: str) -> list[str]:
    """The data tables a statement enters without saying of which namespaces, by their aliases."""
    missing = []
    for entry in _ENTRY.finditer(sql):
        table, alias = entry["table"], entry["alias"] or entry["table"]
        column = rf"(?:\b{alias}\.|(?<![.\w]))namespace_id"
        if re.search(rf"\binto\s+{table}\b", entry.group()):
            if not re.match(rf"{re.escape(entry.group().split('(')[0])}\s*\(\s*namespace_id\b", sql[entry.start() :]):
                missing.append(f"into {table}")
        elif not re.search(rf"{column} = (?:any\(:|:|\w+\.(?:namespace_id|id)\b)", sql) and not re.search(
            rf"\b\w+\.namespace_id = {alias}\.namespace_id", sql
        ):
            missing.append(f"{table} {alias}")
    return missing


def test_a_statement_that_forgets_the_namespace_would_be_noticed() -> None:
    forgetful = (
        "select m.id from memories m join postings p on p.memory_id = m.id where m.namespace_id = any(:ns::uuid[])"
    )

    assert unbound(forgetful) == ["postings p"]
    assert unbound("insert into memories (id, namespace_id) select 1") == ["into memories"]
    assert unbound("select 1 from memories where id = :id::uuid") == ["memories memories"]
    assert unbound("select 1 from memories where namespace_id = :namespace::uuid") == []


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_statement_says_of_which_namespaces_it_reads_or_writes(name: str) -> None:
    sql = source(name)
    if name in EXEMPT or not _ENTRY.search(sql):
        return

    assert unbound(sql) == []
    assert re.search(r"(?:namespace_id|n\.id) = (?:any\(:\w+::uuid\[\]\)|:\w+::uuid)", sql) or re.search(
        r"into \w+ \(\s*namespace_id.*?select\s+:\w+::uuid", sql, re.DOTALL
    ), "no entry point names its namespace by a parameter"


@pytest.mark.parametrize("name", STATEMENTS)
def test_a_statement_groups_and_joins_within_a_namespace(name: str) -> None:
    sql = source(name)

    for joined in re.findall(
        rf"\bjoin (?:{'|'.join(DATA_TABLES)})\b.*?\bon\b(.*?)(?=\bjoin\b|\bwhere\b|\)|$)", sql, re.S
    ):
        assert "namespace_id" in joined, joined
    for grouped in re.findall(r"group by ([^\n]*memory_id[^\n]*)", sql):
        assert "namespace_id" in grouped


@pytest.mark.parametrize("name", FILES)
def test_times_and_chances_come_as_parameters(name: str) -> None:
    volatile = r"\b(?:now|random|clock_timestamp|statement_timestamp|timeofday|gen_random_uuid|uuidv[47]|nextval)\s*\("
    current = r"\b(?:current_timestamp|current_date|current_time|localtimestamp)\b"

    assert re.findall(f"{volatile}|{current}", source(name)) == []


@pytest.mark.parametrize("name", STATEMENTS)
def test_settings_are_never_changed_for_longer_than_a_transaction(name: str) -> None:
    sql = source(name)

    assert "set_config(" not in sql
    assert re.search(r"^\s*set (?!local)", sql) is None


@pytest.mark.parametrize("name", FILES)
def test_sql_is_written_in_lower_case(name: str) -> None:
    assert re.findall(r"\b\w*[A-Z]\w*\b", source(name).replace('collate "C"', "")) == []


@pytest.mark.parametrize("name", STATEMENTS)
def test_every_parameter_says_its_type_at_least_once(name: str) -> None:
    sql = source(name)
    given = set(re.findall(r"(?<![:\w]):([a-z_]+)\b", sql))

    assert {parameter for parameter in given if f":{parameter}::" not in sql} == set()


@pytest.mark.parametrize("name", [*COMPLETE, *VARIANTS])
async def test_postgres_accepts_every_statement(name: str, prepared: dict[str, int]) -> None:
    assert prepared[name] == len(statement(name).parameters)


@pytest.fixture(scope="module")
async def prepared(cluster: Cluster, template: str) -> dict[str, int]:
    """How many parameters Postgres sees in each statement, all prepared over one connection."""
    async with cluster.new_database(template) as database:
        connection = await asyncpg.connect(cluster.address(database))
        seen = {}
        for name in [*COMPLETE, *VARIANTS]:
            seen[name] = len((await connection.prepare(statement(name).sql)).get_parameters())
        await connection.close()
        return seen


def test_a_missing_or_surplus_argument_is_a_mistake_in_the_code() -> None:
    known = statement("keys/find")

    assert known.arguments({"namespace": 1, "keys": 2}) == [1, 2]
    with pytest.raises(KeyError, match="surplus"):
        known.arguments({"namespace": 1, "keys": 2, "surplus": 3})
    with pytest.raises(KeyError, match="keys"):
        known.arguments({"namespace": 1})


@pytest.mark.parametrize("name", COMPLETE)
def test_comments_cost_nothing_on_the_wire(name: str) -> None:
    sent = statement(name).sql

    assert "--" not in sent
    assert "\n\n" not in sent
    assert not re.search(r"(?<![:\w]):[a-z_]+\b", _LITERAL.sub("''", sent)), "an unnumbered parameter"


@pytest.mark.parametrize("name", ["recall/nearest", "recall/nearest:plain", "recall/nearest:0", "recall/nearest:2);"])
def test_a_size_that_is_none_never_reaches_postgres(name: str) -> None:
    with pytest.raises(KeyError, match="dimensions"):
        statement(name)


def test_a_size_stands_in_the_statement_as_a_number() -> None:
    assert "::halfvec(385) <#>" in statement("recall/nearest:385").sql


def test_no_sql_is_built_in_python() -> None:
    package = Path(str(files("folklore")))
    suspicious = re.compile(r"""f["'](?:[^"']*\b)?(?:select|insert|update|delete|create|drop|alter)\b\s""")
    found = [
        f"{path.relative_to(package)}:{number}"
        for path in package.rglob("*.py")
        if "engine" not in path.parts  # starts servers and creates its one database
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if suspicious.search(line)
    ]

    assert found == []
