"""SQL statements: read with their includes, numbered parameters, and the rules that keep them fit for a cluster."""

import re
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from pathlib import Path

import asyncpg
import pytest

from folklore.db import shards
from folklore.db.migrate import schema
from folklore.db.sql_loader import families, sections, statement
from tests.db.test_schema import SMALL

FAMILIES = sorted(families())
FILES = [
    f"{family}/{section}" for family in FAMILIES for section in sorted(sections(family))
]
# filled in by the code
TEMPLATES = frozenset(
    {"roles/begin_as_token", "backup/content", "backup/create_database"}
)
# Those that read tables of Citus or call its functions.
CITUS = frozenset(
    {"server/shards"} | {f"distribute/{name}" for name in sections("distribute")}
)
STATEMENTS = [
    name
    for name in FILES
    if not name.startswith("fragments/") and name not in TEMPLATES | CITUS
]
# A number of dimensions and a model follow its name.
NEAREST = "recall/nearest:256:5a26599c-debf-5979-8901-2d88fe10defa"
VARIANTS = [
    "recall/dense:plain", "recall/keyword:plain",
    "recall/pool:no_vectors", "recall/pool:no_vectors:plain", "recall/pool:plain", "recall/expression:token",
    "recall/dense:as_of", "recall/keyword:as_of", "recall/pool:as_of",
    "recall/pool:no_vectors:as_of", "recall/expression:as_of", "recall/expression:token:as_of", "recall/expand:as_of",
    f"{NEAREST}:plain", f"{NEAREST}:as_of", "changes/match:as_of", "memories/list:happened:oldest:as_of",
    "memories/list:happened:newest:together",
    *(f"memories/list:{by}:newest:plain{of}" for by in ("happened", "updated", "trending") for of in ("", ":one")),
    "activity/attention:no_vectors",
]  # fmt: skip
# What a recall without namespaces sends, where one Postgres has all of them.
EACH = [
    f"{name}:distributed:each" for name in ("recall/dense:plain", f"{NEAREST}:plain")
]
OTHERS = [
    "recall/lexemes:others",
    "recall/dense:others",
    "recall/dense:plain:others",
    f"{NEAREST}:plain:others",
]
WHOLE = {"recall/nearest": NEAREST, "memories/list": "memories/list:happened:newest"}
COMPLETE = [WHOLE.get(name, name) for name in STATEMENTS]
# What a server on a cluster sends, in its real forms.
DISTRIBUTED = [
    f"{name}:distributed"
    for name in [*COMPLETE, *VARIANTS, "namespaces/status:no_vectors"]
    if not name.startswith(("backup/", "distributed/", "roles/", "server/"))
]

TABLES = set(re.findall(r"^create table (\w+)", schema().sql, re.MULTILINE))
DATA_TABLES = sorted(TABLES - SMALL)

# Statements that enter a data table by something else than its namespace, and why they may.
EXEMPT = {
    "backup/answers": "reads all namespaces for a backup of them",
    "server/analyze": "tells the planner about whole tables, and reads nothing for anybody",
    "namespaces/find": "asks each row of namespaces, a small table that is on every node, whether it holds anything",
    "embeddings/index_changes": "counts the vectors of a model in all namespaces",
    **dict.fromkeys(
        ("postings/due", "namespaces/status", "namespaces/list", "recall/indexed",
         *(f"distributed/{name}" for name in sections("distributed"))),
        "counts the memories of each row of namespaces, a small table that is on every node",
    ),
}  # fmt: skip

_COMMENT = re.compile(r"--[^\n]*")
_LITERAL = re.compile(r"'(?:[^']|'')*'")
_ENTRY = re.compile(
    rf"\b(?:from|join|update|into|,)\s+(?P<table>{'|'.join(DATA_TABLES)})\b"
    r"(?:\s+(?:as\s+)?(?!on\b|where\b|join\b|set\b|left\b|cross\b|order\b|group\b|limit\b|using\b)(?P<alias>[a-z_]\w*))?"
)


@cache
def source(name: str) -> str:
    """The section with its includes, without comments and literals."""

    def included(match: re.Match[str]) -> str:
        return source(match[1] if "/" in match[1] else f"fragments/{match[1]}")

    family, _, section = name.partition("/")
    text = re.sub(
        r"^[ \t]*-- include ([\w/]+)$",
        included,
        sections(family)[section],
        flags=re.MULTILINE,
    )
    return _LITERAL.sub("''", _COMMENT.sub("", text))


def unbound(sql: str, *, transitive: bool = True) -> list[str]:
    """The data tables a statement enters without saying of which namespaces, by their aliases.

    `transitive`: it may say so of another table that it joins.
    """
    missing = []
    for entry in _ENTRY.finditer(sql):
        table = entry["table"]
        alias = entry["alias"] or entry["table"]
        column = rf"(?:\b{alias}\.|(?<![.\w]))namespace_id"
        if re.search(rf"\binto\s+{table}\b", entry.group()):
            if not re.match(
                rf"{re.escape(entry.group().split('(')[0])}\s*\(\s*namespace_id\b",
                sql[entry.start() :],
            ):
                missing.append(f"into {table}")
        elif not re.search(rf"{column} = (?:any\()?[:$]", sql) and not (
            transitive
            and re.search(
                rf"{column} = \w+\.(?:namespace_id|id)\b|\b\w+\.namespace_id = {alias}\.namespace_id",
                sql,
            )
        ):
            missing.append(f"{table} {alias}")
    return missing


def test_a_statement_that_forgets_the_namespace_would_be_noticed() -> None:
    forgetful = "select m.id from memories m join postings p on p.memory_id = m.id where m.namespace_id = any(:ns::uuid[])"

    assert unbound(forgetful) == ["postings p"]
    assert unbound(
        forgetful.replace("where", "and p.namespace_id = m.namespace_id where"),
        transitive=False,
    )
    assert unbound("insert into memories (id, namespace_id) select 1") == [
        "into memories"
    ]
    assert unbound("select 1 from memories where id = :id::uuid") == [
        "memories memories"
    ]
    assert unbound("select 1 from memories where namespace_id = :namespace::uuid") == []


def breaking(
    rule: Callable[[str], object], names: list[str] = STATEMENTS
) -> dict[str, object]:
    """Return what a rule finds wrong in each statement."""
    return {name: wrong for name in names if (wrong := rule(source(name)))}


def test_statements_say_of_which_namespaces_they_read_or_write() -> None:
    entering = [
        name
        for name in STATEMENTS
        if name not in EXEMPT and _ENTRY.search(source(name))
    ]

    def unnamed(sql: str) -> bool:
        """Check that no entry point names its namespace by a parameter."""
        return not re.search(
            r"(?:namespace_id|n\.id) = (?:any\(:\w+::uuid\[\]\)|:\w+::uuid)", sql
        ) and not re.search(
            r"into \w+ \(\s*namespace_id.*?(?:select\s+|values \():\w+::uuid",
            sql,
            re.DOTALL,
        )

    assert breaking(unbound, entering) == {}
    assert breaking(unnamed, entering) == {}


def test_on_a_cluster_every_entry_names_its_namespaces_by_a_parameter() -> None:
    """Citus sends a statement whole to a node if each table says by itself which shard is meant."""
    names = [name for name in [*DISTRIBUTED, *EACH] if name.split(":")[0] not in EXEMPT]

    assert {
        name: wrong
        for name in names
        if (wrong := unbound(statement(name).sql, transitive=False))
    } == {}


def test_statements_group_and_join_within_a_namespace() -> None:
    joined = re.compile(
        rf"\bjoin (?:{'|'.join(DATA_TABLES)})\b.*?\bon\b(.*?)(?=\bjoin\b|\bwhere\b|\)|$)",
        re.S,
    )
    grouped = re.compile(r"group by ([^\n]*memory_id[^\n]*)")

    assert breaking(
        lambda sql: [found for found in joined.findall(sql) + grouped.findall(sql) if "namespace_id" not in found]
    ) == {}  # fmt: skip


@pytest.mark.parametrize(
    "forbidden",
    [
        r"\b(?:now|random|clock_timestamp|statement_timestamp|timeofday|gen_random_uuid|uuidv[47]|nextval)\s*\(",
        r"\b(?:current_timestamp|current_date|current_time|localtimestamp)\b",
        r"set_config\(|^\s*set (?!local)",
        r"\b(?!C\b)\w*[A-Z]\w*\b",
    ],
    ids=[
        "times and chances come as parameters",
        "the current time too",
        "settings last a transaction",
        "lower case",
    ],
)
def test_no_file_has(forbidden: str) -> None:
    # It makes functions, as the schema does, and their time is that of the transaction.
    names = [name for name in FILES if name != "distribute/tokens"]

    assert breaking(re.compile(forbidden).findall, names) == {}


def test_every_parameter_says_its_type_at_least_once() -> None:
    assert breaking(
        lambda sql: {name for name in re.findall(r"(?<![:\w]):([a-z_]+)\b", sql) if f":{name}::" not in sql}
    ) == {}  # fmt: skip


async def test_postgres_accepts_every_statement_with_its_number_of_parameters(
    connection: asyncpg.Connection,
) -> None:
    for name in [*COMPLETE, *VARIANTS, *OTHERS, *EACH, *DISTRIBUTED]:
        prepared = await connection.prepare(statement(name).sql)
        assert len(prepared.get_parameters()) == len(statement(name).parameters), name


async def columns(connection: asyncpg.Connection, name: str) -> list[str]:
    """Return the names of the columns of a statement's rows, in order."""
    prepared = await connection.prepare(statement(name).sql)
    return [column.name for column in prepared.get_attributes()]


# It has no other text: `Shards` sends it after recall/lexemes, to read the lexemes of each namespace.
OF_CLUSTERS_ALONE = {"recall_lexemes_of_each"}


@pytest.mark.parametrize(
    "name", sorted(sections("distributed").keys() - OF_CLUSTERS_ALONE)
)
async def test_a_statement_with_a_second_text_has_the_same_columns_in_both(
    connection: asyncpg.Connection, name: str
) -> None:
    plain = name.replace("_", "/", 1)
    on_one_server = await columns(connection, plain)
    on_a_cluster = await columns(connection, f"{plain}:distributed")

    if on_one_server == ["QUERY PLAN"]:  # the name that Postgres gives to a plan
        on_one_server = ["json_build_array"]
    assert sorted(on_a_cluster) == sorted(on_one_server)
    assert statement(f"{plain}:distributed").json == statement(plain).json


def test_a_missing_or_surplus_argument_is_a_mistake_in_the_code() -> None:
    known = statement("changes/find_keys")

    assert known.arguments({"namespace": 1, "keys": 2}) == [1, 2]
    with pytest.raises(KeyError, match="surplus"):
        known.arguments({"namespace": 1, "keys": 2, "surplus": 3})
    with pytest.raises(KeyError, match="keys"):
        known.arguments({"namespace": 1})


def test_comments_and_unnumbered_parameters_never_reach_postgres() -> None:
    sent = {name: _LITERAL.sub("''", statement(name).sql) for name in COMPLETE}

    assert [
        name
        for name, sql in sent.items()
        if re.search(r"--|\n\n|(?<![:\w]):[a-z_]+\b", sql)
    ] == []


@pytest.mark.parametrize(
    "name",
    [
        "recall/nearest",
        "recall/nearest:256",
        NEAREST.replace("256", "0"),
        NEAREST.replace("5a", "')"),
        NEAREST[:-1],
    ],
)
def test_a_size_that_is_none_never_reaches_postgres(name: str) -> None:
    with pytest.raises(KeyError, match="model"):
        statement(name)


def test_a_size_stands_in_the_statement_as_a_number() -> None:
    sql = statement(NEAREST).sql

    assert "::halfvec(256) <#>" in sql
    assert "model_id = '5a26599c-debf-5979-8901-2d88fe10defa'" in sql


def test_no_sql_is_built_in_python() -> None:
    package = Path(str(files("folklore")))
    suspicious = re.compile(
        r"""f["'](?:[^"']*\b)?(?:select|insert|update|delete|create|drop|alter)\b\s"""
    )
    found = [
        f"{path.relative_to(package)}:{number}"
        for path in package.rglob("*.py")
        if "engine" not in path.parts  # starts servers and creates its one database
        for number, line in enumerate(
            path.read_text(encoding="utf-8").splitlines(), start=1
        )
        if suspicious.search(line)
    ]

    assert found == []


# On a cluster Citus itself joins the shards of these, in order.
JOINED_BY_CITUS = {
    "audit/read", "audit/time", "changes/relations", "injections/last_session", "injections/read", "injections/stated",
    "memories/ending", "memories/locate",
}  # fmt: skip


def test_a_statement_over_several_namespaces_in_an_order_says_how_a_cluster_merges_it() -> (
    None
):
    ordered = set()
    for name in COMPLETE:
        asked = statement(name)
        if "namespaces" in asked.parameters and is_ordered(asked.sql):
            ordered.add(name.split(":")[0])
    known = {*shards._ORDERS, *shards._BY_TIME}

    assert known - ordered == set(), "db/shards.py names what has no order"
    assert ordered - known - JOINED_BY_CITUS == set(), (
        "Write the order into _ORDERS in db/shards.py; or add the statement to JOINED_BY_CITUS here, if `make cluster` "
        "shows that Citus plans it by itself."
    )


def is_ordered(sql: str) -> bool:
    """Return whether the outermost query has an order or a limit."""
    outermost = re.sub(r"'[^']*'", "''", re.sub(r"--[^\n]*", "", sql))
    nested = None
    while outermost != nested:
        nested = outermost
        outermost = re.sub(r"\([^()]*\)", "", nested)
    return re.search(r"\b(?:order by|limit)\b", outermost) is not None
