"""Relations between memories: created, changed and removed, within one namespace."""

from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from mcp import Client

from folklore.callers import Caller
from folklore.contract.memories import GetRequest
from folklore.errors import InvalidInput, Refused
from folklore.model import Relation
from tests.mcp.test_tools import call, refusal
from tests.person import Person, contents


async def stored(client: Client, *texts: str, namespace: str = "notes") -> list[str]:
    answer = await call(
        client,
        "memory_store",
        memories=[{"content": text} for text in texts],
        namespace=namespace,
    )
    return [item["id"] for item in answer["stored"]]


async def relations(client: Client, id_: str) -> list[dict[str, Any]]:
    [memory] = (await call(client, "memory_get", ids=[id_]))["memories"]
    return list(memory.get("relations", []))


async def test_a_relation_is_created_strengthened_and_removed(client: Client) -> None:
    cause, effect = await stored(client, "The disk is full.", "The build fails.")
    relation = {"from": cause, "to": effect, "type": "causes", "strength": 0.5}
    unsure = {"from": effect, "to": cause, "type": "causes", "strength": 0.0}
    assert await call(client, "memory_relate", relations=[unsure]) == {
        "created": [unsure]
    }
    await call(client, "memory_relate", relations=[unsure | {"remove": True}])

    made = await call(client, "memory_relate", relations=[relation])
    seen = await relations(client, effect)
    stronger = await call(
        client, "memory_relate", relations=[relation | {"strength": 0.9}]
    )
    then = await relations(client, effect)
    gone = await call(client, "memory_relate", relations=[relation | {"remove": True}])

    assert made == {"created": [relation]}
    assert seen == [{"from": cause, "type": "causes", "strength": 0.5}]
    assert stronger == {"created": [], "updated": [relation | {"strength": 0.9}]}
    assert then[0]["strength"] == 0.9
    assert [item["type"] for item in gone["removed"]] == ["causes"]
    assert await relations(client, effect) == []


async def test_a_failed_relation_is_reported_and_does_not_stop_the_others(
    client: Client,
) -> None:
    a, b = await stored(client, "a", "b")
    (elsewhere,) = await stored(client, "c", namespace="other")
    changes: list[tuple[dict[str, Any], str | None]] = [
        ({"from": a, "to": b, "type": "my_own_word"}, None),
        ({"from": a, "to": a, "type": "causes"}, "itself"),
        (
            {"from": a, "to": elsewhere, "type": "causes"},
            "two namespaces, notes and other",
        ),
        ({"from": a, "to": str(uuid4()), "type": "causes"}, "no memory"),
        ({"from": a, "to": b, "type": "Not A Type"}, "type"),
        ({"from": a, "to": b, "type": "causes", "strength": 1.5}, "strength"),
        ({"from": b, "to": a, "type": "causes", "remove": True}, "did not exist"),
        ({"from": a, "to": b, "type": "my_own_word"}, "twice"),
        ({"from": a, "to": b, "type": "supersedes", "remove": True}, "undo"),
    ]

    answer = await call(
        client, "memory_relate", relations=[change for change, _ in changes]
    )

    assert [item["type"] for item in answer["created"]] == ["my_own_word"]
    reasons = [item["reason"] for item in answer["failed"]]
    for words in (words for _, words in changes if words):
        assert any(words in reason for reason in reasons), words
    assert len(reasons) == len(changes) - 1


async def test_superseding_by_relation_closes_the_old_one(person: Person) -> None:
    old, new, newer = await person.keep("old", "new", "newer")

    outcome = await person.relate(Relation(new, "supersedes", old))
    again = await person.relate(
        Relation(new, "supersedes", old), Relation(newer, "supersedes", old)
    )

    assert len(outcome.created) == 1
    assert (len(again.updated), len(again.failed)) == (1, 1)
    assert str(new) in again.failed[0].reason
    assert sorted(contents(await person.recall("*"))) == ["new", "newer"]
    await person.undo(old)
    assert await person.relations(old) == []


async def test_a_superseded_memory_supersedes_nothing_and_the_first_of_two_in_one_call_applies(
    person: Person,
) -> None:
    old, new, newer, newest = await person.keep("old", "new", "newer", "newest")
    await person.relate(Relation(newer, "supersedes", new))

    by_the_replaced = await person.relate(Relation(new, "supersedes", old))
    by_two = await person.relate(
        Relation(newer, "supersedes", old), Relation(newest, "supersedes", old)
    )

    assert [item.reason for item in by_the_replaced.failed] == [
        f"from: the memory {new} was itself forgotten or superseded."
    ]
    assert [relation.from_id for relation in by_two.created] == [newer]
    assert [
        (item.relation.from_id, "two replacements" in item.reason)
        for item in by_two.failed
    ] == [(newest, True)]
    assert {relation.from_id for relation in await person.relations(old)} == {newer}


async def test_each_removal_of_a_relation_is_reported_by_itself(person: Person) -> None:
    a, b, c, d = await person.keep("a", "b", "c", "d")
    there = Relation(a, "causes", b)
    other_from = Relation(d, "causes", b)
    others = [
        Relation(a, "precedes", b),
        Relation(a, "causes", c),
        Relation(b, "causes", a),
        other_from,
    ]
    await person.relate(there, *others)

    first = await person.relate(there, Relation(c, "causes", b), remove=True)

    assert [relation.type for relation in first.removed] == ["causes"]
    assert [item.reason for item in first.failed] == ["This relation did not exist."]
    left = {
        (relation.from_id, relation.type, relation.to_id)
        for relation in await person.relations(a)
    }
    assert left == {(a, "precedes", b), (a, "causes", c), (b, "causes", a)}
    assert other_from.to_id in [
        relation.to_id for relation in await person.relations(d)
    ]


async def test_one_call_cannot_supersede_in_a_circle(person: Person) -> None:
    a, b = await person.keep("a", "b")

    outcome = await person.relate(
        Relation(a, "supersedes", b), Relation(b, "supersedes", a)
    )

    assert len(outcome.failed) == 2
    assert set(contents(await person.recall("*"))) == {"a", "b"}


async def test_a_forgotten_memory_is_neither_related_nor_shown_in_relations(
    person: Person,
) -> None:
    a, b, c = await person.keep("a", "b", "c")
    await person.relate(Relation(a, "causes", b), Relation(a, "causes", c))
    await person.forget(b)

    assert [relation.to_id for relation in await person.relations(a)] == [c]
    for relation in (
        Relation(c, "causes", b),
        Relation(b, "causes", c),
        Relation(c, "supersedes", b),
    ):
        assert [item.reason for item in (await person.relate(relation)).failed] == [
            f"There is no memory {b}."
        ]
    [forgotten] = (await person.call(GetRequest(ids=(b,), forgotten=True))).found
    assert [relation.from_id for relation in forgotten.relations] == [a], (
        "relations of a forgotten memory are kept"
    )
    await person.undo(b)
    assert len(await person.relations(a)) == 2


async def test_at_most_two_hundred_relations_are_shown_strongest_first(
    person: Person,
) -> None:
    hub, *spokes = await person.keep(
        "hub", *(f"spoke {number}" for number in range(201))
    )
    relations = [
        Relation(hub, "causes", id_, (place + 1) / 202)
        for place, id_ in enumerate(spokes)
    ]

    await person.relate(*relations)

    assert [relation.to_id for relation in await person.relations(hub)] == spokes[:0:-1]


async def test_a_call_takes_1_to_500_relations_from_a_caller_who_may_write(
    client: Client, person: Person
) -> None:
    assert "1 to 500" in await refusal(client, "memory_relate", relations=[])
    assert (
        len(
            (
                await person.relate(
                    *[Relation(uuid4(), "causes", uuid4()) for _ in range(500)]
                )
            ).failed
        )
        == 500
    )
    with pytest.raises(InvalidInput, match="1 to 500"):
        await person.relate(*[Relation(uuid4(), "causes", uuid4())] * 501)
    with pytest.raises(Refused):
        await replace(person, caller=Caller("reader", may_write=False)).relate(
            Relation(uuid4(), "causes", uuid4())
        )
