"""Confidence, of memory and question alone; the score of a result, which is calibrated and falls along the order."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from folklore.contract.recall import RankingRequest, RecallRequest
from folklore.model import Answer, Draft
from folklore.ranking.trained import weights_for
from folklore.ranking.weights import chosen
from tests.person import NOON, Person, ids

WEIGHTS = weights_for("bundled")


async def asked(person: Person, question: str, **arguments: Any) -> Answer:
    """Recall as the tool does, weak matches shortened."""
    return await person.call(RecallRequest(query=question, **arguments))


async def confidences(
    person: Person, question: str, **arguments: Any
) -> dict[UUID, float]:
    """Return the confidence of each result."""
    ranking = RankingRequest(min_score=0.0)
    answer = await asked(
        person, question, ranking=ranking, limit=30, explain=True, **arguments
    )
    explained: list[Any] = [
        (result.memory.id, result.explain) for result in answer.memories
    ]
    return {id_: explanation["confidence"] for id_, explanation in explained}


async def first_confidence(person: Person, question: str) -> float:
    """Return the confidence of the first result."""
    [first, *_] = (await person.recall(question, explain=True)).memories
    explained: Any = first.explain
    return float(explained["confidence"])


PROJECT = [
    "The payment service retries a failed charge three times.", "Deployments run from the main branch every Tuesday.",
    "Ada reviews every change of the payment service.", "The staging database is restored from a backup each night.",
    "Feature flags live in the file flags.toml.", "Our on-call rotation changes on Mondays at noon.",
    "The queue between billing and shipping is RabbitMQ.", "Error PAY_1042 means that the card has expired.",
    "Invoices are rendered by the billing worker.", "Tests of the payment service need a running Redis.",
]  # fmt: skip
QUESTIONS = [
    "How often does the payment service retry a charge?", "What does PAY_1042 mean?", "When do we deploy?",
    "Who reviews changes?", "Which queue connects billing and shipping?",
]  # fmt: skip
SUBJECTS = [
    "garden",
    "violin",
    "glacier",
    "bakery",
    "comet",
    "lighthouse",
    "marathon",
    "orchid",
    "saddle",
    "kiln",
]


async def test_unrelated_memories_do_not_move_the_confidence_of_a_memory(
    person: Person,
) -> None:
    await person.keep(*PROJECT)
    session = [
        Draft(f"{text} So said the meeting.", session="meeting") for text in PROJECT
    ]
    await person.keep(*session)
    before = {question: await confidences(person, question) for question in QUESTIONS}
    for batch in range(3):
        await person.keep(
            *(
                f"A note about the {SUBJECTS[n % 10]} of {SUBJECTS[n // 10 % 10]} {batch} {n}"
                for n in range(500)
            )
        )

    moved = 0
    for question, known in before.items():
        for id_, score in (await confidences(person, question)).items():
            if id_ in known:
                moved += 1
                assert score == pytest.approx(known[id_], abs=0.002)
    assert moved >= 30


async def test_other_namespaces_do_not_move_the_confidence_of_a_memory(
    person: Person,
) -> None:
    kept = await person.keep(*PROJECT)
    for number, subject in enumerate(SUBJECTS):
        texts = (
            f"The {subject} was repaired in week {week}, for {week + number} crowns."
            for week in range(30)
        )
        await person.keep(*texts, namespace=f"other-{number}")

    for question in QUESTIONS:
        alone = await confidences(person, question, namespaces=("notes",))
        together = await confidences(person, question)
        assert set(together) & set(kept)
        for id_ in set(together) & set(alone):
            assert together[id_] == pytest.approx(alone[id_], abs=0.002)


async def test_a_question_without_an_answer_gets_at_most_five_lines_and_a_note(
    person: Person,
) -> None:
    await person.keep(
        *(
            text + "\n\nMore about it is in the handbook of the team." * 30
            for text in PROJECT
        )
    )

    answer = await asked(person, "Which colour has the whale in Melanie's aquarium?")

    assert len(answer.memories) == 5
    assert {result.match for result in answer.memories} == {"weak"}
    assert all(len(result.memory.content) <= 160 for result in answer.memories)
    assert not any("\n" in result.memory.content for result in answer.memories)
    assert answer.note is not None
    assert answer.note.startswith("Nothing stored here fits the question well")
    assert answer.cursor is None


async def test_what_has_nothing_to_do_with_the_question_is_no_result(
    person: Person,
) -> None:
    deploy = "We deploy from the release branch, never from main."
    await person.keep(deploy, "Alice reviews every change to the billing code.")
    alone = await asked(person, "where do we deploy from?")
    await person.keep(*PROJECT)
    among = [await asked(person, question) for question in QUESTIONS]

    assert [result.memory.content for result in alone.memories] == [deploy]
    assert all(result.score for answer in among for result in answer.memories)


async def test_weak_results_are_shown_by_their_summary(person: Person) -> None:
    pairs = zip(PROJECT, SUBJECTS, strict=True)
    await person.keep(
        *(Draft(f"{text} " * 30, summary=f"About {subject}") for text, subject in pairs)
    )

    answer = await asked(person, "Which colour has the whale in Melanie's aquarium?")

    assert {result.memory.content for result in answer.memories} <= {
        f"About {subject}" for subject in SUBJECTS
    }


async def test_min_score_0_leaves_weak_results_as_they_are(person: Person) -> None:
    texts = [f"{text} {'More is in the handbook. ' * 20}".strip() for text in PROJECT]
    await person.keep(*texts)

    answer = await asked(
        person,
        "Which colour has the whale in Melanie's aquarium?",
        ranking=RankingRequest(min_score=0.0),
    )

    assert sorted(result.memory.content for result in answer.memories) == sorted(texts)


async def test_a_result_that_fits_comes_before_weak_ones(person: Person) -> None:
    await person.keep(*PROJECT)

    answer = await asked(
        person, "What does the error PAY_1042 of an expired card mean?"
    )

    assert (
        answer.memories[0].memory.content
        == "Error PAY_1042 means that the card has expired."
    )
    assert answer.memories[0].match != "weak"
    assert {result.match for result in answer.memories[1:]} == {"weak"}
    assert answer.note is None


TOPICS = [
    (
        "The deployment pipeline builds images with kaniko.",
        "What builds the images of the deployment pipeline?",
    ),
    (
        "The deployment pipeline is triggered by a tag.",
        "What triggers the deployment pipeline?",
    ),
    (
        "The deployment pipeline stores logs for 90 days.",
        "How long does the deployment pipeline keep logs?",
    ),
    (
        "The deployment pipeline runs on runners in Frankfurt.",
        "Where do runners of the deployment pipeline run?",
    ),
    (
        "Only Ada may approve the deployment pipeline.",
        "Who may approve the deployment pipeline?",
    ),
    (
        "The deployment pipeline skips tests of documentation.",
        "Which tests does the deployment pipeline skip?",
    ),
    (
        "The deployment pipeline notifies the channel ops-alerts.",
        "Which channel does the deployment pipeline notify?",
    ),
    (
        "A deployment pipeline that fails is retried once.",
        "How often is a failed deployment pipeline retried?",
    ),
    (
        "The deployment pipeline signs artefacts with cosign.",
        "How are artefacts of the deployment pipeline signed?",
    ),
    (
        "The deployment pipeline caches packages in MinIO.",
        "Where does the deployment pipeline cache packages?",
    ),
]


async def test_a_topic_shared_by_all_memories_does_not_make_right_answers_weak(
    person: Person,
) -> None:
    kept = await person.keep(*(text for text, _ in TOPICS))
    await person.keep(
        *(
            f"The deployment pipeline has a step for the {name} {n}."
            for name in SUBJECTS
            for n in (1, 2)
        )
    )

    matches = {}
    for id_, (_, question) in zip(kept, TOPICS, strict=True):
        answer = await asked(person, question)
        matches[question] = {
            result.memory.id: result.match for result in answer.memories
        }.get(id_)

    assert [
        question
        for question, match in matches.items()
        if match not in ("strong", "fair")
    ] == []


async def test_a_memory_without_the_name_in_the_question_is_a_weaker_match(
    person: Person,
) -> None:
    [hers, his] = await person.keep(
        "Maria painted the harbour in May.", "Okonkwo sold pictures of a harbour."
    )

    answer = await asked(person, "Which harbour did Okonkwo paint in summer?")

    found = await confidences(person, "Which harbour did Okonkwo paint in summer?")
    assert ids(answer)[0] == his
    assert found[his] > found[hers]


async def test_confidence_is_greater_for_a_question_about_the_day_of_a_memory(
    person: Person,
) -> None:
    day = NOON - timedelta(days=300)  # 8 July 2025
    others = [
        Draft(f"Somebody repaired boat number {number}.", occurred_at=NOON)
        for number in range(12)
    ]
    await person.keep(Draft("Maria saw the harbour.", occurred_at=day), *others)

    right = await first_confidence(person, "What was Maria doing on 8 July 2025?")

    assert right > await first_confidence(
        person, "What was Maria doing on 20 October 2024?"
    )
    texts = (
        Draft("The relay lagged.", occurred_at=day),
        "A refund happens in two days.",
        "It happens.",
    )
    (relay, *_) = await person.keep(*texts, namespace="days")
    for query in ("What happened on 8 July 2025?", "2025-07-08"):
        answer = await person.recall(query, namespaces=("days",))
        assert (ids(answer)[0], answer.memories[0].score != 0) == (relay, True)


async def test_a_memory_about_the_file_in_a_question_comes_first(
    person: Person,
) -> None:
    tied = Draft(
        "A refund is sent once: the terminal repeats the id.",
        paths=("crates/pay/src/sale.rs",),
    )
    await person.keep(
        "Crates need two reviews; src files of pay are read by Jo.",
        tied,
        "The sale begins at nine.",
    )

    answer = await asked(person, "change the timeout in crates/pay/src/sale.rs")

    assert answer.memories[0].memory.paths == tied.paths


async def test_confidence_is_greater_for_a_reply_after_its_question(
    person: Person,
) -> None:
    said = ("Which submarine did you visit?", "The one in Lagos, with my uncle.")
    fillers = [f"Somebody repaired boat number {number}." for number in range(12)]
    await person.keep(*said, *fillers, namespace="apart")
    await person.keep(
        *(Draft(text, session="s") for text in said), *fillers, namespace="together"
    )

    asked_ = "Who showed Ada the submarine, and was it in Lagos?"

    apart, together = [
        await person.recall(asked_, namespaces=(name,), explain=True)
        for name in ("apart", "together")
    ]
    both: list[Any] = [
        next(
            result.explain
            for result in answer.memories
            if result.memory.content == said[1]
        )
        for answer in (apart, together)
    ]
    assert both[1]["confidence"] > both[0]["confidence"]


async def test_every_preset_says_how_well_results_match_and_a_search_for_words_does_not(
    person: Person,
) -> None:
    await person.keep(*PROJECT)

    for preset in ("keyword", "semantic", "roaming"):
        answer = await asked(
            person,
            "What does the error PAY_1042 mean?",
            ranking=RankingRequest(preset=preset),
        )
        assert {result.match for result in answer.memories} <= {
            "strong",
            "fair",
            "weak",
        }
        best = next(
            result for result in answer.memories if "PAY_1042" in result.memory.content
        )
        assert best.score == max(result.score or 0.0 for result in answer.memories)
    searched = (await person.search("service")).memories
    assert [(result.match, result.score) for result in searched] == [(None, None)] * 3


async def test_an_expression_has_the_confidence_of_its_words(person: Person) -> None:
    await person.keep(
        "The harbour office opens at nine.",
        *(f"Boat number {number} is new." for number in range(9)),
    )

    half = await first_confidence(person, "harbour AND submarine OR office")
    for expression in ('"harbour office"', "harbour AND NOT boat"):
        assert await first_confidence(person, expression) > half


async def test_a_result_below_min_score_leaves_its_place_to_the_next(
    person: Person,
) -> None:
    await person.keep(
        *(
            f"The regatta of {year} in Kiel was cancelled by storm."
            for year in range(1990, 2010)
        )
    )
    await person.keep(
        *(
            f"Something else entirely, paragraph {number} about gardens."
            for number in range(40)
        )
    )
    question = "regatta Kiel cancelled storm gardens paragraph"
    every = await person.recall(question, limit=60)
    ranking = chosen(min_score=every.memories[19].score)
    enough = await person.recall(question, limit=60, ranking=ranking)

    given: list[UUID] = []
    cursor = None
    for _ in range(10):
        page = await person.recall(question, limit=5, ranking=ranking, cursor=cursor)
        given += ids(page)
        cursor = page.cursor
        if cursor is None:
            break
    assert 20 <= len(enough.memories) < 60
    assert len(set(given)) == len(given) >= 15
