"""Projects keep the namespace that an earlier version gave them, and new ones get one of their own."""

from dataclasses import replace

import asyncpg
import pytest

from folklore.memory.namespaces.kept import with_kept_names
from folklore.memory.permissions import role_in
from tests.memory.auth.test_isolation import holder
from tests.person import Person

FOLDER = "repo:app@0123abcd"
HOSTED = "repo:gitlab.com/acme/shop"


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
