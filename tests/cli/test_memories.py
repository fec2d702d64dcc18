"""Storing, finding, listing and showing from the command line."""

import json
import re

import pytest

from folklore.cli.output import print_table
from tests.commands import CommandLine, command_line  # noqa: F401 - the fixture `folklore`


@pytest.mark.parametrize(
    "text",
    [
        "- a\n- b",
        "-never use tabs",
        "--force is never used",
        "- note that",
        "-- two",
        "-\t- x",
    ],
)
async def test_a_text_may_begin_with_a_dash(folklore: CommandLine, text: str) -> None:
    id_ = await folklore.keep(text, "--source", "- a list", "--tag=x y")

    [memory] = (await folklore.json("show", id_))["memories"]
    assert (memory["content"], memory["source"], memory["tags"]) == (
        text,
        "- a list",
        ["x-y"],
    )
    assert (await folklore("recall", text)).code == 0
    assert (await folklore("search", "- a")).code == 0


async def test_a_word_with_a_dash_is_refused_with_where_it_goes(
    folklore: CommandLine,
) -> None:
    for word in ("-verbose", "--tagg"):
        ran = await folklore("store", word, "x")
        assert ran.code == 2
        assert "comes after --: folklore store -- TEXT" in ran.err
    assert (await folklore("store", "--", "-verbose")).code == 0


async def test_a_list_of_tags_or_namespaces_may_be_one_text(
    folklore: CommandLine,
) -> None:
    id_ = await folklore.keep("x", "--tag", "#deploy, ops", "-n", "one")
    await folklore.keep("y", "-n", "other")

    listed = await folklore.json("list", "-n", "one,other", "--tag", "deploy,x")
    assert [memory["id"] for memory in listed["memories"]] == [id_]
    assert listed["memories"][0]["tags"] == ["deploy", "ops"]
    for spelling in (id_.upper(), f"[{id_}]", f"…{id_[-8:]}", f"urn:uuid:{id_}"):
        [shown] = (await folklore.json("show", spelling))["memories"]
        assert shown["id"] == id_


async def test_null_is_no_name_on_the_command_line(folklore: CommandLine) -> None:
    for command in (
        ["store", "x", "-n", "null"],
        ["store", "x", "--tag", "none"],
        ["list", "-n", "undefined"],
        ["list", "--author", "None"],
        ["namespaces", "create", "null"],
    ):
        ran = await folklore(*command)
        assert (ran.code, "no name" in ran.err or "no tag" in ran.err) == (2, True)


async def test_every_field_can_be_given(folklore: CommandLine) -> None:
    options = {
        "--namespace": "team", "--kind": "decision", "--source": "adr-1", "--session": "s1",
        "--occurred-at": "2025-01-02T03:04:05+00:00", "--importance": "0.5", "--path": "src/a.py",
        "--idempotency-key": "k1",
    }  # fmt: skip
    fields = [
        "summary=short", "confidence=0.25", "priority=2", "language=de", "expires-at=2100-01-01", "commit=abc",
        'metadata={"ticket": 12}',
    ]  # fmt: skip
    given = [
        *sum(options.items(), ()),
        *sum((("--field", field) for field in fields), ()),
    ]
    id_ = await folklore.keep("Wir liefern aus.", "--tag", "a", "--tag", "b", *given)

    (memory,) = (await folklore.json("show", id_))["memories"]

    expected = {
        "content": "Wir liefern aus.", "namespace": "team", "summary": "short", "kind": "decision", "tags": ["a", "b"],
        "source": "adr-1", "session": "s1", "position": 0, "occurred_at": "2025-01-02T03:04:05Z", "importance": 0.5,
        "confidence": 0.25, "priority": 2, "language": "german", "expires_at": "2100-01-01T00:00:00Z",
        "paths": ["src/a.py"], "commit": "abc", "metadata": {"ticket": 12}, "author": "tester",
    }  # fmt: skip
    assert memory.items() >= expected.items()


async def test_text_comes_from_stdin_and_a_known_text_is_not_stored_twice(
    folklore: CommandLine,
) -> None:
    first = folklore.process(
        "store", "-", "--json", stdin="Zeile eins\nZeile zwei: ü\n".encode()
    ).json
    second = await folklore.json("store", "Zeile eins\r\nZeile  zwei: ü ")

    assert first["stored"][0]["status"] == "stored"
    assert second["stored"] == [{"id": first["stored"][0]["id"], "status": "duplicate"}]


async def test_text_from_stdin_that_is_not_utf_8_is_refused_and_not_stored_broken(
    folklore: CommandLine,
) -> None:
    ran = folklore.process("store", "-", stdin="Größe".encode("latin-1"))

    assert ran.code == 2
    assert "TEXT: is not UTF-8" in ran.err
    assert (await folklore.json("list"))["memories"] == []


async def test_entities_of_a_text_are_proposed_as_tags_and_added_with_entities(
    folklore: CommandLine,
) -> None:
    proposed = await folklore.done(
        "store",
        "Sarah Connor moved billing to Postgres.",
        "--tag",
        "entity:tool:postgres",
    )
    plain = await folklore.done("store", "the lease ends in spring")
    await folklore.done(
        "store", "Sarah Connor keeps the keys.", "--entities", "--tag", "keys"
    )

    assert "names entity:person:sarah-connor: --entities adds these tags" in " ".join(
        proposed.split()
    )
    assert "names" not in plain
    [found] = (await folklore.json("list", "--tag", "entity:person"))["memories"]
    assert found["content"] == "Sarah Connor keeps the keys."
    assert found["tags"] == ["keys", "entity:person:sarah-connor"]


@pytest.fixture
async def colours(folklore: CommandLine) -> CommandLine:
    """Three memories that differ in every filter."""
    for text, session, day, tag in (
        ("The sky is blue.", "one", "2025-01-01", "nature/sky"),
        ("The grass is green.", "one", "2025-02-01", "nature"),
        ("The logo is green.", "two", "2025-03-01", "brand"),
    ):
        kind = "decision" if tag == "brand" else "note"
        options = [
            "--session",
            session,
            "--occurred-at",
            day,
            "--tag",
            tag,
            "--kind",
            kind,
            "--source",
            f"doc/{day}",
        ]
        await folklore.done("store", text, *options, "--path", f"{session}/a.py")
    return folklore


FILTERED: list[tuple[list[str], set[str]]] = [
    (["--kind", "decision"], {"logo"}),
    (["--tag", "nature"], {"sky", "grass"}),
    (["--tag", "nature", "--filter", "tag-match=exact"], {"grass"}),
    (["--tag", "nature", "--tag", "brand"], {"sky", "grass", "logo"}),
    (["--tag", "nature", "--tag", "nature/sky", "--filter", "tag_mode=all"], {"sky"}),
    (["--filter", "exclude_tags=nature"], {"logo"}),
    (
        ["--filter", "exclude_tags=nature/sky", "--filter", "exclude_tags=brand"],
        {"grass"},
    ),
    (["--filter", "source_prefix=doc/2025-02"], {"grass"}),
    (["--filter", "session=one"], {"sky", "grass"}),
    (["--author", "stranger"], set()),
    (["--filter", "paths=two"], {"logo"}),
    (["--time", "in February 2025"], {"grass"}),
    (["--filter", "since=2025-02-01"], {"grass", "logo"}),
    (["--time", "before 2025-02-01"], {"sky"}),
    (["--filter", "as_of=2025-02-15"], {"sky", "grass"}),
    (["--filter", "include_superseded=true", "--limit", "2"], {"grass", "logo"}),
]


async def test_filters_narrow(colours: CommandLine) -> None:
    for options, expected in FILTERED:
        found = await colours.json("list", *options)
        assert {
            memory["content"].split()[1] for memory in found["memories"]
        } == expected, options


EMPTY: list[list[str]] = [
    *(["--kind", ""], ["--tag", ""], ["--author", ""], ["--time", ""], ["-n", ""]),
    *(
        ["--filter", f"{name}="]
        for name in ("exclude_tags", "source_prefix", "session", "paths", "since")
    ),
]


async def test_an_empty_filter_is_refused_and_never_everything(
    folklore: CommandLine,
) -> None:
    for options in EMPTY:
        ran = await folklore("list", *options, "--json")

        error = json.loads(ran.err)["error"]
        assert (ran.code, error["code"], ran.out) == (2, "invalid_input", ""), options
        assert error["hint"], options


async def test_an_empty_namespace_or_name_is_refused_and_never_all_of_them(
    folklore: CommandLine,
) -> None:
    id_ = await folklore.keep("The gate is open.")
    await folklore.done("tokens", "create", "--name", "ann", "--owner")

    for command in (["history", id_, "-n", ""], ["undo", id_, "-n", ""], ["tokens", "list", "--name", ""],
                    ["audit", "--name", ""]):  # fmt: skip
        ran = await folklore(*command)
        assert (ran.code, "empty" in ran.err) == (2, True), command
    assert "bob has no valid tokens" in await folklore.done(
        "tokens", "list", "--name", "bob"
    )


async def test_ranking_options_reach_the_ranking(colours: CommandLine) -> None:
    options = [
        "--ranking",
        "dense=0",
        "--ranking",
        "keyword=2",
        "--ranking",
        "mmr-lambda=1",
    ]

    found = await colours.json("recall", "green", "grass", *options, "--limit", "1")
    by_time = await colours.json("recall", "*", "--sort", "time_asc")

    assert [memory["content"] for memory in found["memories"]] == [
        "The grass is green."
    ]
    assert found["truncated"]
    times = [memory["when"] for memory in by_time["memories"]]
    assert len(times) > 1
    assert times == sorted(times)


async def test_an_explanation_shows_people_every_term_that_programs_get(
    colours: CommandLine,
) -> None:
    question = ["recall", "green", "grass", "--limit", "1", "--explain"]

    terms = (await colours.json(*question))["memories"][0]["explain"]
    shown = await colours.done(*question)

    for name in terms.keys() - {"branches", "parts"}:
        assert f" {terms[name]:.4f} " in shown, name
    for name, value in terms["parts"].items():
        assert f"{name} {value:.4f}" in shown
    above, _, numbers = (
        line for line in shown.splitlines() if re.match(r" (#|─|1 ) *", line)
    )
    named = dict(zip(re.split(r"\s{2,}", above.strip()), numbers.split(), strict=True))
    for column, term in (("relevance", "relevance"), ("repeats", "redundancy")):
        assert named[column] == f"{terms[term]:.4f}"


async def test_a_cursor_continues_a_list(colours: CommandLine) -> None:
    first = await colours.json("list", "--limit", "2")
    rest = await colours.json("list", "--limit", "2", "--cursor", first["cursor"])

    assert [
        memory["content"].split()[1] for memory in first["memories"] + rest["memories"]
    ] == ["logo", "grass", "sky"]
    assert "cursor" not in rest


async def test_people_see_place_namespace_time_source_and_text(
    colours: CommandLine,
) -> None:
    shown = await colours.done("search", "sky", "--limit", "1")

    head, text, *_ = shown.splitlines()
    assert head.startswith(" 1. ")
    assert all(
        part in head
        for part in ("notes", "2025-01-01 00:00", "doc/2025-01-01", "#nature/sky")
    )
    assert text == "    The sky is blue."
    assert "\x1b" not in shown
    assert "session" in await colours.done(
        "list", "--limit", "1", "--format", "detailed"
    )


async def test_long_text_is_wrapped_and_cut_to_a_few_lines(
    folklore: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    await folklore.done("store", "word " * 2000)

    lines = (await folklore.done("list")).splitlines()

    assert len(lines) < 15
    assert max(map(len, lines[1:-2])) <= 40
    assert "9,999 characters in all" in lines[-2]


async def test_found_memories_are_shown_before_the_error_for_missing_ones(
    colours: CommandLine,
) -> None:
    id_ = (await colours.json("list"))["memories"][0]["id"]

    ran = await colours("show", id_, "00000000-0000-0000-0000-000000000001")

    assert ran.code == 4
    assert "The logo is green." in ran.out
    assert "00000000-0000-0000-0000-000000000001" in ran.err


async def test_an_empty_store_is_reported(folklore: CommandLine) -> None:
    assert "Nothing has been stored yet" in await folklore.done("recall", "anything")
    assert "Nothing has been stored yet" in await folklore.done("namespaces", "list")
    assert await folklore.json("namespaces", "list") == {"namespaces": []}


async def test_namespaces_and_stats_count(colours: CommandLine) -> None:
    await colours.done("store", "Elsewhere.", "-n", "other")

    listed = await colours.json("namespaces", "list")
    counted = await colours.json("stats")

    assert [(item["name"], item["memories"]) for item in listed["namespaces"]] == [
        ("notes", 3),
        ("other", 1),
    ]
    assert (
        counted["total"].items()
        >= {"memories": 4, "sessions": 2, "forgotten": 0, "without_vector": 0}.items()
    )
    assert counted["namespaces"][0]["name"] == "notes"
    for command in (["stats"], ["namespaces", "list"]):
        table = await colours.done(*command)
        assert "other" in table
        assert "\x1b" not in table


async def test_an_audit_without_results_does_not_say_that_the_log_is_empty(
    colours: CommandLine,
) -> None:
    assert (
        await colours.done("audit", "--name", "stranger")
        == "The audit log holds no such entry.\n"
    )
    assert "store" in await colours.done("audit")


def test_a_table_too_wide_for_the_terminal_keeps_its_words_and_numbers_whole(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")
    columns = ["name", "memories", "newest"]
    rows = [["notes", 1_234_567, "2026-11-22T03:10:29+00:00"], ["more", 2, ""]]

    monkeypatch.setenv("COLUMNS", "30")
    print_table(columns, rows)
    narrow = capsys.readouterr().out.split("\n")
    monkeypatch.setenv("COLUMNS", "80")
    print_table(columns, rows)
    wide = capsys.readouterr().out

    assert [line.split() for line in narrow if line] == [
        ["name", "notes"],
        ["memories", "1,234,567"],
        ["newest", "2026-11-22T03:10:29+00:00"],
        ["name", "more"],
        ["memories", "2"],
    ]
    assert "notes   1,234,567   2026-11-22T03:10:29+00:00" in wide


async def test_json_keeps_every_character(folklore: CommandLine) -> None:
    await folklore.done("store", "日本語 and 👩‍💻")

    ran = folklore.process(
        "list", "--json", LC_ALL="C", PYTHONUTF8="0", PYTHONIOENCODING="ascii"
    )

    assert json.loads(ran.out)["memories"][0]["content"] == "日本語 and 👩‍💻"
