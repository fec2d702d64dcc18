"""Projects keep the namespace that an earlier version gave them, and new ones get one of their own."""

from dataclasses import replace

import asyncpg
import pytest

from folklore.contract.recall import RecallRequest
from folklore.db.sql_loader import statement
from folklore.memory import Facts, Memory, Service
from folklore.memory.context import RequestContext
from folklore.memory.context.usage import UsageRecorder
from folklore.memory.namespaces.kept import with_kept_names
from folklore.permissions import role_in
from tests.memory.auth.test_isolation import holder
from tests.person import Person
from tests.waiting import statements_of

# Of the statement that finds the namespace of a project.
FORMER = statement("namespaces/project").sql
FOLDER = "repo:app@0123abcd"
HOSTED = "repo:gitlab.com/acme/shop"


def service_of(context: RequestContext) -> Service:
    async def opened(_facts: Facts) -> RequestContext:
        return context

    return Service(
        Memory(opened, lambda: UsageRecorder()),
        lambda: Facts(context.caller, context.now),
        lambda: context.caller,
        context.namespace,
    )


def looks_for_project(statements: list[str]) -> bool:
    return FORMER in statements


async def used(person: Person, project: str | None) -> str | None:
    """Return the namespace that a request of this project uses."""
    context = replace(person.context, project=lambda: project)
    return (await with_kept_names(context)).project()


async def test_a_new_project_has_its_own_name(
    person: Person, connection: asyncpg.Connection
) -> None:
    await person.keep("x", namespace="repo:acme/shop")
    await connection.execute("update namespaces set created_at = now()")

    for project in (FOLDER, HOSTED, "repo:acme/web", "default", None):
        assert await used(person, project) == project


async def test_a_project_stays_in_the_namespace_of_its_former_name(
    person: Person, connection: asyncpg.Connection
) -> None:
    await person.keep("x", namespace="repo:acme/Shop")
    await person.keep("x", namespace="repo:app")
    await connection.execute("update namespaces set created_at = '2020-01-01'")

    assert await used(person, FOLDER) == "repo:app"
    assert await used(person, HOSTED) == "repo:acme/Shop"

    await person.keep("y", namespace=HOSTED)
    assert await used(person, HOSTED) == HOSTED
    await connection.execute("update namespaces set deleted_at = now()")
    assert await used(person, FOLDER) == FOLDER


async def test_a_token_of_former_names_opens_new_projects_too(person: Person) -> None:
    ann = await holder(person, "ann", "repo:acme/*:writer")

    assert await used(ann, HOSTED) == "repo:acme/shop"
    assert role_in(ann.caller, "repo:acme/shop") == "writer"
    assert await used(ann, FOLDER) == FOLDER


async def test_a_project_that_was_listed_under_its_own_name_costs_no_statement(
    person: Person, queries: list[str]
) -> None:
    await person.keep("Ferries leave at noon.", namespace=HOSTED)
    await person.recall("ferries")
    context = replace(person.context, project=lambda: HOSTED)

    assert await statements_of(with_kept_names(context), queries) == []


async def test_a_question_to_namespaces_by_name_does_not_look_for_the_project(
    person: Person, queries: list[str]
) -> None:
    await person.keep("Ferries leave at noon.")
    service = service_of(replace(person.context, project=lambda: HOSTED))
    everywhere = service.call(RecallRequest(query="ferries"))
    in_notes = service.call(RecallRequest(query="ferries", namespaces=("notes",)))

    assert looks_for_project(await statements_of(everywhere, queries))
    assert not looks_for_project(await statements_of(in_notes, queries))


@pytest.mark.parametrize("directory", ["/a", "/b"])
async def test_the_project_of_a_directory_is_kept_too(
    person: Person, directory: str
) -> None:
    await person.keep("x", namespace="repo:app")

    async def project_at(_directory: str) -> str:
        return FOLDER

    context = await with_kept_names(replace(person.context, project_at=project_at))

    assert context.project_at is not None
    assert await context.project_at(directory) == "repo:app"
