"""Requirements of a database beyond its version: encoding, locale, and two settings; each tested by what it does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import asyncpg

from folklore.db.sql_loader import statement
from folklore.errors import DatabaseUnsuitable

_ANEW = (
    "Create another database with `create database … template template0 encoding 'UTF8' locale 'C.UTF-8'` (or another "
    "UTF-8 locale of the server), name it in database_url, and run `folklore db migrate`. Memories are carried over "
    "by `folklore export --embeddings` before, and `folklore import` after."
)


@dataclass(frozen=True, slots=True)
class Unmet:
    """A requirement that a database does not meet. If it `hinders`, calls fail; else some words are not found."""

    code: str
    problem: str
    remedy: str
    hinders: bool


def unmet(row: asyncpg.Record) -> list[Unmet]:
    """Return what the row of server/requirements does not meet."""
    found = []
    if row["encoding"] != "UTF8":
        problem = f"Its encoding is {row['encoding']}, and must be UTF8."
        found.append(Unmet("database_encoding", problem, _ANEW, hinders=True))
    elif not row["has_letters"]:
        problem = (
            f"Its locale ({row['locale']}) knows no letters but A to Z, so that words with other letters are not found. "
            "It must be a UTF-8 locale."
        )
        found.append(Unmet("database_locale", problem, _ANEW, hinders=False))
    for setting, problem, hinders in (
        (
            "standard_conforming_strings",
            "so that words beyond ASCII are not found",
            False,
        ),
        ("row_security", "so that every call with a token fails", True),
    ):
        if row[setting] != "on":
            command = f"{row['of_role']} set {setting} = on"
            remedy = f"Run `{command}`, and restart Folklore."
            found.append(
                Unmet(
                    f"database_{setting}",
                    f"{setting} is {row[setting]}, {problem}. It must be on.",
                    remedy,
                    hinders,
                )
            )
    return found


async def read_unmet(connection: asyncpg.Connection) -> list[Unmet]:
    """Return what a database does not meet. One statement."""
    row = await connection.fetchrow(statement("server/requirements").sql)
    if row is None:
        return []
    return unmet(row)


def refuse(found: Sequence[Unmet]) -> None:
    """Raise DatabaseUnsuitable with the problems and their remedies if there are any."""
    if not found:
        return
    problems = " ".join(item.problem for item in found)
    remedies = " ".join(dict.fromkeys(item.remedy for item in found))
    raise DatabaseUnsuitable(
        f"This database is not fit for Folklore. {problems}", hint=remedies
    )
