"""Import of conversations that Claude and ChatGPT export."""

import io
import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import pytest
from hypothesis import given, strategies as st

from folklore.errors import InvalidInput
from folklore.importers import json_values
from folklore_import.conversations import conversation_lines
from tests.commands import CommandLine, command_line  # noqa: F401 - the fixture `folklore`
from tests.importers.test_import_claude import exported


def claude_message(id_: str, sender: str, text: str, **more: Any) -> dict[str, Any]:
    return {
        "uuid": id_, "text": text, "content": [{"type": "text", "text": text, "citations": []}], "sender": sender,
        "created_at": "2025-11-03T08:15:30.123456Z", "updated_at": "2025-11-03T08:15:30.123456Z", "attachments": [],
        "files": [],
    } | more  # fmt: skip


CLAUDE = {
    "uuid": "5a9f0f5e-1f5b-4d0e-9d51-2f7f0f1d2c3b", "name": "Choosing a queue", "summary": "",
    "created_at": "2025-11-03T08:15:00Z", "updated_at": "2025-11-03T08:20:00Z",
    "account": {"uuid": "00000000-0000-0000-0000-000000000001"},
    "chat_messages": [
        claude_message("m1", "human", "Which queue do we use?"),
        claude_message(
            "m2",
            "assistant",
            "ignored, since there are blocks",
            content=[
                {"type": "thinking", "thinking": "Let me think."},
                {"type": "tool_use", "name": "search", "input": {"query": "queue"}},
                {"type": "tool_result", "content": [{"type": "text", "text": "A page."}]},
                {"type": "text", "text": "We decided to use NATS."},
            ],
        ),
        claude_message("m3", "human", " ", content=[]),
        claude_message("m4", "assistant", "From now on, ask before you deploy.", content=[]),
    ],
}  # fmt: skip


def node(
    id_: str, parent: str | None, role: str | None, *parts: Any, **more: Any
) -> dict[str, Any]:
    message = None
    if role is not None:
        message = {
            "id": id_, "author": {"role": role, "name": None, "metadata": {}}, "create_time": 1762157730.5,
            "update_time": None, "content": {"content_type": "text", "parts": list(parts)},
            "status": "finished_successfully", "weight": 1.0, "metadata": {}, "recipient": "all",
        } | more  # fmt: skip
    return {"id": id_, "message": message, "parent": parent, "children": []}


IMAGE = {
    "content_type": "image_asset_pointer",
    "asset_pointer": "file-service://file-1",
}
SPOKEN = {
    "content_type": "audio_transcription",
    "text": "Remember that we deploy from tags.",
    "direction": "in",
}
CHATGPT = {
    "title": "Deploying\nthe shop", "create_time": 1762157700.25, "update_time": 1762157800.5,
    "mapping": {
        each["id"]: each
        for each in (
            node("root", None, None),
            node("s", "root", "system", "", metadata={"is_visually_hidden_from_conversation": True}),
            node("q", "s", "user", "Which cache do we use?"),
            node("old", "q", "assistant", "We decided to use Memcached."),
            node("call", "q", "assistant", "search('cache')", recipient="python"),
            node("tool", "call", "tool", "Valkey"),
            node("think", "tool", "assistant", content={"content_type": "thoughts", "thoughts": [{"content": "Hm."}]}),
            node("new", "think", "assistant", "Let us switch to Valkey\ue200cite\ue202turn0search1\ue201.【4†source】"),
            node("q2", "new", "user", content={"content_type": "multimodal_text", "parts": [IMAGE, SPOKEN]}),
            node("picture", "q2", "user", content={"content_type": "multimodal_text", "parts": [IMAGE]}),
            node("a2", "picture", "assistant", "We agreed to tag releases.", "Anything", create_time=None),
        )
    },
    "moderation_results": [], "current_node": "a2", "conversation_id": "6908a1b2-0000-8000-8000-000000000001",
    "id": "6908a1b2-0000-8000-8000-000000000001", "default_model_slug": "auto",
}  # fmt: skip


def archive(path: Path, **files: Any) -> Path:
    """Write a zip file as it is downloaded."""
    with ZipFile(path, "w", ZIP_DEFLATED) as out:
        out.writestr("user.json", "{}")
        out.writestr("chat.html", "<html></html>")
        for name, value in files.items():
            out.writestr(
                f"{name.replace('_', '-')}.json",
                value if isinstance(value, bytes) else json.dumps(value),
            )
    return path


async def test_a_claude_export_becomes_one_memory_for_each_turn_that_states_something(
    folklore: CommandLine, tmp_path: Path
) -> None:
    report = await folklore.json(
        "import", archive(tmp_path / "data-2026.zip", conversations=[CLAUDE])
    )
    found = await exported(folklore)

    assert report["format"] == "conversations"
    assert report["namespaces"] == {"tester-private": 2}
    assert report["skipped"] == {
        "file user.json": 1,
        "turn without text": 1,
        "turn that states nothing": 1,
    }
    assert {content: (line["position"], line["author"]) for content, line in found.items()} == {
        "We decided to use NATS.": (1, "Claude"), "From now on, ask before you deploy.": (2, "Claude"),
    }  # fmt: skip
    turn = found["We decided to use NATS."]
    assert (turn["session"], turn["source"]) == (
        CLAUDE["uuid"],
        "Claude: Choosing a queue",
    )
    assert turn["tags"] == ["conversation", "claude"]
    assert turn["occurred_at"] == "2025-11-03T08:15:30.123456+00:00"


async def test_a_chatgpt_export_follows_the_branch_that_was_seen_last(
    folklore: CommandLine, tmp_path: Path
) -> None:
    report = await folklore.json(
        "import", archive(tmp_path / "export.zip", conversations_000=[CHATGPT])
    )
    found = await exported(folklore)

    assert {content: (line["position"], line["author"]) for content, line in found.items()} == {
        "Let us switch to Valkey.": (1, "ChatGPT"),
        "Remember that we deploy from tags.": (2, "tester"), "We agreed to tag releases.": (3, "ChatGPT"),
    }  # fmt: skip
    assert {line["source"] for line in found.values()} == {
        "ChatGPT: Deploying the shop"
    }
    assert (
        found["We agreed to tag releases."]["occurred_at"]
        == "2025-11-03T08:15:00.250000+00:00"
    )  # of the conversation
    assert report["skipped"] == {"file user.json": 1,
        "message of the system or a tool": 3, "message that is not shown": 1, "turn without text": 1,
        "turn of another branch": 1, "turn that states nothing": 1,
    }  # fmt: skip


async def test_a_branch_of_claude_is_followed_too(
    folklore: CommandLine, tmp_path: Path
) -> None:
    messages = [
        claude_message(
            "m1",
            "human",
            "We always write it.",
            parent_message_uuid="00000000-0000-4000-8000-000000000000",
        ),
        claude_message(
            "m2", "assistant", "We decided to write it.", parent_message_uuid="m1"
        ),
        claude_message(
            "m3",
            "human",
            "We never read it.",
            parent_message_uuid="00000000-0000-4000-8000-000000000000",
        ),
        claude_message(
            "m4", "assistant", "We decided to read it.", parent_message_uuid="m3"
        ),
    ]
    file = tmp_path / "conversations.json"
    file.write_text(json.dumps([CLAUDE | {"chat_messages": messages}]))

    report = await folklore.json("import", file)

    assert set(await exported(folklore)) == {
        "We never read it.",
        "We decided to read it.",
    }
    assert report["skipped"] == {"turn of another branch": 2}


async def test_a_later_export_adds_only_the_new_turns(
    folklore: CommandLine, tmp_path: Path
) -> None:
    folder = tmp_path / "export"
    folder.mkdir()
    (folder / "conversations-000.json").write_text(json.dumps([CLAUDE], indent=1))
    await folklore.done("import", folder, "--namespace", "talks")
    more = CLAUDE["chat_messages"] + [claude_message("m5", "human", "I prefer tags.")]  # type: ignore[operator]
    (folder / "conversations-000.json").write_text(
        json.dumps([CLAUDE | {"chat_messages": more}])
    )
    (folder / "conversations-001.json").write_text(json.dumps([CHATGPT]))

    report = await folklore.json("import", folder, "--namespace", "talks")

    assert (report["stored"], report["duplicates"]) == (4, 2)
    assert report["namespaces"] == {"talks": 6}


async def test_a_namespace_that_others_can_read_needs_yes(
    folklore: CommandLine, tmp_path: Path
) -> None:
    file = archive(tmp_path / "x.zip", conversations=[CLAUDE])
    await folklore.done("tokens", "create", "--name", "bob", "--grant", "talks:reader")

    refused = await folklore("import", file, "--namespace", "talks")

    assert refused.code == 2
    assert "others can read talks" in refused.err
    assert await exported(folklore) == {}


async def test_a_conversation_that_cannot_be_read_is_reported_and_the_others_are_stored(
    folklore: CommandLine, tmp_path: Path
) -> None:
    broken = json.dumps(CLAUDE | {"name": "?"}).encode().replace(b"NATS", b"N\xffTS")
    half_pair = CHATGPT | {"title": "\ud83d"}
    odd: list[Any] = [
        {"neither": 1}, 7, {"mapping": {"a": 5, "b": {"message": [], "parent": {}}}},
        {"mapping": {}, "current_node": []},
        {"chat_messages": [1, {"sender": "human"}, {"sender": {}, "text": 5}], "uuid": []},
        {"mapping": {"a": node("a", "b", "user", "We go round."), "b": node("b", "a", "user", "Note: and round.")}},
    ]  # fmt: skip
    file = tmp_path / "conversations.json"
    values = [json.dumps(value).encode() for value in [CLAUDE, *odd, half_pair]]
    file.write_bytes(
        b"\xef\xbb\xbf[" + b",\n".join([values[0], broken, *values[1:]]) + b"]"
    )

    ran = await folklore("import", file, "--format", "conversations", "--json")

    assert ran.code == 1
    failures = [
        (failure["place"], failure["message"].split(": ")[1])
        for failure in ran.json["failures"]
    ]
    assert [(place, message.partition(".")[0]) for place, message in failures] == [
        ("conversations.json, conversation 2", "is not UTF-8"),
        (
            "conversations.json, conversation 3",
            "has neither chat_messages (Claude) nor mapping (ChatGPT)",
        ),
        ("conversations.json, conversation 4", "is not a JSON object"),
    ]
    assert set(await exported(folklore)) == {
        "We decided to use NATS.", "From now on, ask before you deploy.", "We go round.", "Note: and round.",
        "Let us switch to Valkey.", "Remember that we deploy from tags.", "We agreed to tag releases.",
    }  # fmt: skip


async def test_what_is_left_out_of_an_export_is_named(
    folklore: CommandLine, tmp_path: Path
) -> None:
    message = claude_message("m1", "human", "Remember that we tag releases.")
    quiet = claude_message("m2", "human", "See this.")
    claude = CLAUDE | {
        "chat_messages": [
            message | {"attachments": [{"file_name": "a.txt"}]},
            quiet | {"files": [{}]},
        ]
    }
    image = {"content_type": "image_asset_pointer"}
    turn = node("a", None, "user", "From now on, use tabs.")
    turn["message"]["content"]["parts"].append(image)
    turn["message"]["metadata"] = {"attachments": [{"name": "b.pdf"}]}
    file = archive(
        tmp_path / "x.zip",
        conversations=[claude, CHATGPT | {"mapping": {"a": turn}, "current_node": "a"}],
        projects=[],
        users=[],
    )

    report = await folklore.json("import", file)

    assert report["stored"] == 2
    assert report["ignored_fields"] == {"attachments": 2, "files": 1, "images": 1}
    assert report["skipped"] == {
        "file projects.json": 1, "file user.json": 1, "file users.json": 1, "turn that states nothing": 1,
    }  # fmt: skip


async def test_a_secret_in_a_turn_is_refused_by_its_conversation(
    folklore: CommandLine, tmp_path: Path
) -> None:
    key = "AKIA" + "Z7QF4M2XN8PLKD3V"
    messages = [
        claude_message("m1", "human", f"Remember that my key is {key}"),
        claude_message("m2", "human", "Never reuse it."),
    ]

    ran = await folklore(
        "import",
        archive(
            tmp_path / "x.zip", conversations=[CLAUDE | {"chat_messages": messages}]
        ),
    )

    assert (
        "conversations.json, conversation 1: content: holds what looks like a secret"
        in ran.err
    )
    assert key not in ran.out + ran.err
    assert set(await exported(folklore)) == {"Never reuse it."}


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (b"[" + json.dumps(CLAUDE).encode()[:-30], "ends too early"),
        (b'[{"mapping": {' + b'"a": {' * 100_000, "is nested too deep"),
        (b'[{"mapping": {"a" 1}}]', "is not JSON (Expecting ':' delimiter)"),
        (b'[{"mapping": ' + b"9" * 10_000 + b"}]", "is not JSON"),
    ],
)
async def test_a_file_that_is_not_whole_is_refused_after_what_can_be_read(
    folklore: CommandLine, tmp_path: Path, raw: bytes, problem: str
) -> None:
    whole = json.dumps(CLAUDE | {"uuid": "first"}).encode()
    file = archive(tmp_path / "x.zip", conversations=b"[" + whole + b"," + raw[1:])

    ran = await folklore("import", file)

    assert ran.code == 2
    assert problem in ran.err


async def test_a_damaged_zip_file_is_refused(
    folklore: CommandLine, tmp_path: Path
) -> None:
    file = archive(
        tmp_path / "x.zip",
        conversations=[CLAUDE | {"name": str(number)} for number in range(50)],
    )
    raw = file.read_bytes()

    for damaged in (raw[:-200], raw[:400] + b"\0" * 20 + raw[420:]):
        file.write_bytes(damaged)
        ran = await folklore("import", file, "--format", "conversations")
        assert ran.code == 2
        assert "folklore: FILE: " in ran.err


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**9), 10**9)
    | st.floats(allow_nan=False)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(
    st.lists(values, max_size=6),
    st.sampled_from([None, 1]),
    st.booleans(),
    st.integers(1, 9),
)
def test_values_read_piece_by_piece_equal_those_of_the_whole_file(
    items: list[Any], indent: int | None, ascii_only: bool, chunk: int
) -> None:
    raw = json.dumps(items, indent=indent, ensure_ascii=ascii_only).encode(
        "utf-8", "replace"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_values, "_CHUNK", chunk)
        assert list(json_values.JsonValues(io.BytesIO(raw))) == json.loads(raw)


@given(st.binary(max_size=60), st.integers(1, 9))
def test_any_bytes_give_values_or_invalid_input(raw: bytes, chunk: int) -> None:
    def read() -> Iterator[Any]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(json_values, "_CHUNK", chunk)
            try:
                yield from json_values.JsonValues(io.BytesIO(raw))
            except InvalidInput:
                return

    assert len(list(read())) <= len(raw)


def test_a_large_export_is_read_in_the_memory_of_one_conversation(
    tmp_path: Path,
) -> None:
    file = tmp_path / "conversations.json"
    messages = [
        claude_message(str(number), "human", f"Turn {number}. " * 80)
        for number in range(100)
    ]
    texts = (
        json.dumps(CLAUDE | {"uuid": str(number), "chat_messages": messages})
        for number in range(60)
    )
    with file.open("w") as out:
        out.writelines(
            f"{'[' if place == 0 else ','}{text}" for place, text in enumerate(texts)
        )
        out.write("]")
    size = file.stat().st_size

    tracemalloc.start()
    turns = sum(1 for _ in conversation_lines(file))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert turns == 6_000
    assert size > 9_000_000
    assert peak < 6_000_000


def test_an_answer_has_the_question_before_it_as_a_cue(tmp_path: Path) -> None:
    turns = [
        ("human", "Thanks. We have two brokers. Which queue do we use?"),
        ("assistant", "We decided to use NATS."),
        ("human", "We agreed to tag releases. Go on."),
        ("assistant", "From now on, ask before you deploy."),
        ("human", "Who holds the key " + "AKIA" + "IOSFODNN7" + "QWERTYU?"),
        ("assistant", "We decided to keep keys in the vault."),
    ]
    messages = [claude_message(str(n), *turn) for n, turn in enumerate(turns)]
    export = archive(
        tmp_path / "export.zip", conversations=[CLAUDE | {"chat_messages": messages}]
    )

    lines = [json.loads(line.raw) for line in conversation_lines(export)]  # type: ignore[arg-type]

    cues = {line["content"]: line.get("cues") for line in lines if "content" in line}
    assert cues == {
        "We decided to use NATS.": ["Which queue do we use?"],
        "We agreed to tag releases.": None,
        "From now on, ask before you deploy.": None,
        "We decided to keep keys in the vault.": None,
    }
