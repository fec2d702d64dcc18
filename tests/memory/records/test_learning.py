"""Cues learned from questions: of what a session asked and then used, and of what it asked in vain and then stored."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any, get_args
from uuid import UUID

import pytest
import structlog
from mcp import Client

from folklore.app import App
from folklore.callers import Access, Caller, Grant, Role
from folklore.config import Settings
from folklore.contract.hooks import PauseRequest
from folklore.contract.memories import GetRequest, UpdateRequest
from folklore.mcp.server import build_server
from folklore.memory.context.caches import AskedQuestion
from folklore.memory.records.learning import teach_used
from folklore.model import Draft, Memory
from folklore.text.cues import brings_words, fits, phrase, with_learned
from tests.commands import CommandLine, command_line  # noqa: F401 - the fixture `folklore`
from tests.conftest import connected
from tests.doors import own_service
from tests.person import NOON, Person
from tests.waiting import STUCK

HTTP = "Outgoing calls go through shop/http.py, which waits two seconds."
QUESTION = "wrap the purchase call in a retry decorator"

Ask = Callable[..., Awaitable[dict[str, Any]]]


@pytest.fixture
async def ask(client: Client, app: App) -> Ask:
    """A call of a tool in a session, with what follows it."""

    async def call(tool: str, session: str = "one", **arguments: Any) -> dict[str, Any]:
        return await tool_call(client, app, tool, session, **arguments)

    return call


async def tool_call(
    client: Client, app: App, tool: str, session: str, **arguments: Any
) -> dict[str, Any]:
    meta: Any = {"folklore/sessionId": session} if session else None
    result = await client.call_tool(tool, arguments, meta=meta)
    assert not result.is_error, result
    await (await app.ready()).memory.finish(STUCK)
    return dict(result.structured_content or {})


async def memory_of(app: App, id_: str) -> Memory:
    result = await own_service(app).call(GetRequest(ids=(UUID(id_),)))
    return result.found[0].memory


async def stored(ask: Ask, content: str, session: str = "one", **fields: Any) -> str:
    return str(
        (await ask("memory_store", session, content=content, **fields))["stored"][0][
            "id"
        ]
    )


async def test_a_question_whose_result_was_read_becomes_a_cue(
    ask: Ask, app: App
) -> None:
    id_ = await stored(ask, HTTP, cues=["the site hangs"])

    await ask("memory_recall", query=QUESTION)
    await ask("memory_get", ids=[id_])
    await ask("memory_get", ids=[id_])

    memory = await memory_of(app, id_)
    assert memory.cues == ("the site hangs", QUESTION)
    assert memory.learned == (QUESTION,)
    found = await ask("memory_recall", query="a retry decorator")
    assert found["memories"][0]["id"] == id_


@pytest.mark.parametrize(
    "use",
    [
        lambda ask, id_: ask("memory_update", id=id_, tags=["http"]),
        lambda ask, _id: ask("memory_store", content=HTTP),
    ],
    ids=["updated", "confirmed"],
)
async def test_what_was_changed_or_stored_again_was_used_too(
    ask: Ask, app: App, use: Callable[[Ask, str], Awaitable[object]]
) -> None:
    id_ = await stored(ask, HTTP)
    await ask("memory_recall", query=QUESTION)

    await use(ask, id_)

    assert (await memory_of(app, id_)).learned == (QUESTION,)


@pytest.mark.parametrize(
    "use",
    [
        lambda ask, text: ask("client_hook", event="Stop", message=text),
        lambda ask, text: ask("client_hook", prompt=text),
        lambda ask, text: ask("memory_store", content=text),
    ],
    ids=["last words", "prompt", "stored memory"],
)
@pytest.mark.parametrize(
    ("text", "learned"),
    [
        ("So the outgoing calls go through shop/http.py now.", (QUESTION,)),
        ("Purchase calls are retried, as {id} says.", (QUESTION,)),
        ("Nothing of that helps here.", ()),
    ],
    ids=["in its words", "by its id", "not at all"],
)
async def test_what_the_session_quotes_was_used_too(
    ask: Ask,
    app: App,
    use: Callable[[Ask, str], Awaitable[object]],
    text: str,
    learned: tuple[str, ...],
) -> None:
    id_ = await stored(ask, HTTP)
    other = await stored(ask, "The purchase call needs a decorator.")
    await ask("memory_recall", query=QUESTION)

    await use(ask, text.replace("{id}", id_))

    assert (await memory_of(app, id_)).learned == learned
    assert (await memory_of(app, other)).learned == ()


async def test_a_paused_session_teaches_nothing(ask: Ask, app: App) -> None:
    id_ = await stored(ask, HTTP)
    await ask("memory_recall", query=QUESTION)
    await own_service(app).call(PauseRequest())

    await ask("client_hook", event="Stop", message=HTTP)

    assert (await memory_of(app, id_)).learned == ()


async def test_what_replaces_a_found_memory_learns_the_question(
    ask: Ask, app: App
) -> None:
    old = await stored(ask, HTTP)
    await ask("memory_recall", query=QUESTION)

    new = await stored(ask, "Each client waits by itself.", supersedes=old)

    assert (await memory_of(app, new)).learned == (QUESTION,)
    assert (await memory_of(app, old)).learned == ()


async def test_of_several_questions_each_memory_learns_the_latest_that_found_it(
    ask: Ask, app: App
) -> None:
    id_ = await stored(ask, HTTP)

    await ask("memory_recall", queries=["which timeout is usual", QUESTION])
    await ask("memory_get", ids=[id_])

    assert (await memory_of(app, id_)).learned == (QUESTION,)


async def test_a_question_that_found_nothing_becomes_a_cue_of_what_is_stored_after_it(
    ask: Ask, app: App
) -> None:
    question = "which dependency injection framework do we choose"
    await ask("memory_recall", query=question)
    await ask("memory_recall", query="how are invoices numbered here")
    id_ = await stored(ask, "For dependency injection there is one module of Koin.")
    other = await stored(ask, "Labels come out empty if the printer has no paper.")

    assert (await memory_of(app, id_)).learned == (question,)
    assert (await memory_of(app, other)).cues == ()


async def test_a_question_that_was_answered_teaches_a_new_memory_nothing(
    ask: Ask, app: App
) -> None:
    await stored(ask, "For dependency injection there is one module of Koin.")
    await ask("memory_recall", query="one module of Koin for dependency injection")

    id_ = await stored(ask, "Dependency injection of tests has a module too.")

    assert (await memory_of(app, id_)).cues == ()


@pytest.mark.parametrize("session", ["two", ""])
async def test_other_sessions_and_those_without_a_name_teach_nothing(
    ask: Ask, app: App, session: str
) -> None:
    id_ = await stored(ask, HTTP)

    await ask("memory_recall", "one", query=QUESTION)
    await ask("memory_get", session, ids=[id_])
    await ask("memory_recall", session="", query=QUESTION)
    await ask("memory_get", session="", ids=[id_])

    assert (await memory_of(app, id_)).cues == ()


@pytest.mark.parametrize(
    "question",
    [
        "outgoing calls wait how many seconds",
        "retry " + "of calls " * 20,
        "retry with ```python code```",
        "retry with " + "AKIA" + "IOSFODNN7" + "QWERTYU",
    ],
    ids=["no new word", "too long", "a fence", "a secret"],
)
async def test_a_question_that_says_nothing_new_or_is_no_phrase_is_not_learned(
    ask: Ask, app: App, question: str
) -> None:
    id_ = await stored(ask, "Outgoing calls wait two seconds, however many there are.")

    await ask("memory_recall", query=question)
    await ask("memory_get", ids=[id_])

    assert (await memory_of(app, id_)).cues == ()


async def test_learning_is_no_change_that_an_undo_takes_back_or_that_a_writer_meets(
    ask: Ask, app: App
) -> None:
    id_ = await stored(ask, HTTP)
    await ask("memory_update", id=id_, tags=["http"])
    await ask("memory_recall", query=QUESTION)
    [read] = (await ask("memory_get", ids=[id_]))["memories"]

    await ask("memory_update", id=id_, if_revision=read["revision"], kind="decision")

    memory = await memory_of(app, id_)
    assert (memory.learned, memory.kind) == ((QUESTION,), "decision")
    assert memory.revision == read["revision"] + 1 == 3


async def test_a_learned_cue_that_was_removed_is_not_learned_again(
    ask: Ask, app: App
) -> None:
    id_ = await stored(ask, HTTP)
    await ask("memory_recall", query=QUESTION)
    await ask("memory_get", ids=[id_])

    await ask("memory_update", id=id_, cues=[])
    await ask("memory_get", ids=[id_])

    memory = await memory_of(app, id_)
    assert (memory.cues, memory.learned) == ((), ())


async def test_the_setting_switches_learning_off(settings: Settings) -> None:
    app = App(settings.model_copy(update={"learn_cues": False}))
    try:
        async with connected(build_server(own_service(app))) as client:
            kept = await tool_call(client, app, "memory_store", "one", content=HTTP)
            id_ = kept["stored"][0]["id"]
            await tool_call(client, app, "memory_recall", "one", query=QUESTION)
            await tool_call(client, app, "memory_get", "one", ids=[id_])
            assert (await memory_of(app, id_)).cues == ()
    finally:
        await app.close()


async def test_who_may_not_write_teaches_nothing(person: Person) -> None:
    [id_] = await person.keep(HTTP)
    learned = {}
    for role in get_args(Role):
        grant = Grant(UUID(int=1), "notes", role)
        caller = Caller(role, access=Access(UUID(int=2), "0" * 64, (grant,)))
        question = AskedQuestion(
            f"{role} {QUESTION}",
            NOON,
            frozenset(("notes",)),
            frozenset((id_,)),
            answered=False,
        )
        person.library.asked.add((role, None, "one"), question)

        teach_used(replace(person, caller=caller).context, "one", "notes", [id_])
        await person.library.finish(STUCK)
        [memory] = await person.get(id_)
        learned[role] = len(memory.learned)

    assert learned == {"reader": 0, "writer": 1, "admin": 2}


async def test_many_lessons_at_a_time_leave_connections_to_others(
    settings: Settings,
) -> None:
    few = settings.database.model_copy(update={"pool_max": 2})
    app = App(settings.model_copy(update={"database": few}))
    try:
        library = (await app.ready()).memory
        person = Person(library)
        stated = tuple(f"situation {number}" for number in range(7))
        [id_] = await person.keep(Draft(HTTP, cues=stated))
        with structlog.testing.capture_logs() as lines:
            # the first fills the list, the others replace it
            for number, subject in enumerate("paper copper marble willow".split()):
                question = AskedQuestion(
                    f"{subject} boats over {subject} rivers",
                    NOON,
                    frozenset(("notes",)),
                    frozenset((id_,)),
                    answered=False,
                )
                library.asked.add(("tester", None, str(number)), question)
                teach_used(person.context, str(number), "notes", [id_])
            await library.finish(STUCK)
            [memory] = await person.get(id_)
    finally:
        await app.close()

    assert [line for line in lines if line["event"] == "cues_not_learned"] == []
    assert len(memory.learned) == 1


async def test_questions_are_forgotten_after_half_an_hour(person: Person) -> None:
    [id_] = await person.keep(HTTP)
    question = AskedQuestion(
        QUESTION, NOON, frozenset(("notes",)), frozenset((id_,)), answered=False
    )
    person.library.asked.add(("tester", None, "one"), question)

    for minutes, learned in ((31, ()), (30, (QUESTION,))):
        later = person.at(NOON + timedelta(minutes=minutes))
        teach_used(later.context, "one", "notes", [id_])
        await person.library.finish(STUCK)
        [memory] = await person.get(id_)
        assert memory.learned == learned


async def test_a_question_of_another_namespace_teaches_nothing(person: Person) -> None:
    [id_] = await person.keep(HTTP)
    question = AskedQuestion(
        QUESTION, NOON, frozenset(("private",)), frozenset((id_,)), answered=False
    )
    person.library.asked.add(("tester", None, "one"), question)

    teach_used(person.context, "one", "notes", [id_])
    await person.library.finish(STUCK)

    [memory] = await person.get(id_)
    assert memory.cues == ()


async def test_a_successor_takes_over_what_was_learned(ask: Ask, app: App) -> None:
    old = await stored(ask, HTTP)
    await ask("memory_recall", query=QUESTION)
    await ask("memory_get", ids=[old])

    new = await stored(ask, "Calls go out directly.", supersedes=old)

    assert (await memory_of(app, new)).learned == (QUESTION,)


async def test_a_merge_keeps_as_learned_what_nobody_stated(person: Person) -> None:
    target, other = await person.keep(
        Draft(HTTP, cues=("a door", "a gate"), learned_cues=("a door", "a gate")),
        Draft("Calls wait.", cues=("a gate",)),
    )

    merged = await person.call(UpdateRequest(id=target, merge=(other,)))

    assert (merged.cues, merged.learned) == (("a door", "a gate"), ("a door",))
    assert (await person.undo(target)).learned == ("a door", "a gate")


def test_a_full_list_loses_the_learned_cue_that_matched_least() -> None:
    cues = ("a", "b", "c", "d", "e", "f", "g", "h")

    full = with_learned(cues, ("x", "b", "d", "f"), "new", (9, 2, 1, 1))

    assert full == (
        ("a", "b", "c", "e", "f", "g", "h", "new"),
        ("x", "b", "f", "new"),
    )
    assert with_learned(cues, (), "new", ()) is None
    assert with_learned(("a",), ("x",), "new", (0,)) == (("a", "new"), ("x", "new"))


def test_a_question_fits_a_text_with_two_of_its_words() -> None:
    text = "Deployments to production wait for the release manager."

    assert fits("who must agree to deploy to production", text)
    assert not fits("who is the manager", text)
    assert brings_words("who must agree", [text])
    assert not brings_words("the release of production", [text])
    assert phrase("  how do\nwe deploy ") == "how do we deploy"
    assert phrase("x" * 121) is None


async def test_a_review_lists_what_is_used_and_has_no_cues_for_one_call(
    ask: Ask, app: App, client: Client, folklore: CommandLine
) -> None:
    id_ = await stored(ask, HTTP)
    await stored(ask, "Labels need paper in the printer.", cues=["an empty label"])
    await stored(ask, "Nobody asks for this.")
    await ask("memory_recall", session="", query="outgoing calls wait two seconds")
    await ask("memory_recall", session="", query="labels need paper in the printer")
    await app.usage.close()

    listed = (await folklore.json("review", "--only", "cues"))["review"]
    usual = (await folklore.json("review"))["review"]
    [message] = (await client.get_prompt("review")).messages
    text = str(message.content)
    await ask("memory_store", memories=[{"content": HTTP, "cues": ["a site hangs"]}])
    [after] = (await client.get_prompt("review")).messages

    assert [item["memories"][0]["id"] for item in listed] == [id_]
    assert usual == []
    assert HTTP in text
    assert "Labels" not in text
    assert "Nobody" not in text
    assert HTTP not in str(after.content)
    assert (await memory_of(app, id_)).cues == ("a site hangs",)
