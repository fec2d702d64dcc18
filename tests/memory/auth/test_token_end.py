"""The end of tokens: after 90 days unless another is requested, and reported before."""

from datetime import datetime, timedelta

import asyncpg

from folklore.contract.health import ChecksRequest
from folklore.contract.people import CreateTokenRequest, InviteRequest
from tests.commands import CommandLine, command_line  # noqa: F401 - the fixture `folklore`
from tests.person import NOON, Person

QUARTER = timedelta(days=90)


async def test_tokens_and_invitations_end_after_90_days_unless_another_end_is_requested(
    person: Person,
) -> None:
    async def ends(**expires: str) -> set[datetime | None]:
        token = await person.call(
            CreateTokenRequest(name="ann", grants=("notes:reader",), **expires)
        )
        owner = await person.call(
            CreateTokenRequest(name="root", owner=True, **expires)
        )
        invitation = await person.call(
            InviteRequest(name="bob", grants=("notes:reader",), **expires)
        )
        return {token.expires_at, owner.expires_at, invitation.expires_at}

    assert await ends() == {NOON + QUARTER}
    assert await ends(expires="1y") == {NOON + timedelta(days=365)}
    assert await ends(expires="never") == {None}


async def test_the_command_line_states_the_end_of_a_token_or_that_it_has_none(
    folklore: CommandLine, connection: asyncpg.Connection
) -> None:
    ends = {}
    for name, options in (
        ("ann", []),
        ("ben", ["--expires", "2d"]),
        ("ci", ["--no-expiry"]),
    ):
        ran = await folklore(
            "tokens", "create", "--name", name, "--grant", "notes:reader", *options
        )
        ends[name] = ("without an end" in ran.err, ", until " in ran.err, ran.code)
    lasting = await folklore(
        "invite",
        "dan",
        "--grant",
        "notes:reader",
        "--no-expiry",
        "--url",
        "https://x.example",
    )
    ending = await folklore(
        "invite", "eve", "--grant", "notes:reader", "--url", "https://x.example"
    )

    assert ends == {
        "ann": (False, True, 0),
        "ben": (False, True, 0),
        "ci": (True, False, 0),
    }
    assert "The token has no end." in lasting.err
    assert "The token ends " in ending.err
    assert "no end" not in ending.err
    rows = await connection.fetch("select p.name, t.expires_at - t.created_at as life from tokens t, principals p "
                                  "where p.id = t.principal_id order by 1")  # fmt: skip
    assert [row["life"] for row in rows] == [
        QUARTER,
        timedelta(days=2),
        None,
        None,
        QUARTER,
    ]


async def test_the_owner_is_warned_of_tokens_that_end_within_a_week(
    person: Person,
) -> None:
    async def check(at: datetime) -> tuple[str, str]:
        checks = await person.at(at).call(ChecksRequest())
        [found] = [
            (check.status, check.detail) for check in checks if check.name == "tokens"
        ]
        return found

    none = await check(NOON)
    await person.create_token("ci", "notes:reader", expires="90d")
    await person.create_token("root", owner=True)
    early, late, after = [
        await check(NOON + timedelta(days=days)) for days in (82, 84, 91)
    ]

    assert (none, early, after) == (
        ("ok", "none"),
        ("ok", "2 valid"),
        ("ok", "1 valid"),
    )
    assert late == ("warning", "1 of 2 end within 7 days: those of ci.")
