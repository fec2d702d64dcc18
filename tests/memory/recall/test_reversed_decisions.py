"""A decision and its reversal have nearly the same words and are two answers: recall brings both."""

from collections.abc import Sequence
from datetime import timedelta
from typing import get_args

import numpy as np
import pytest
from numpy.typing import NDArray

from folklore.contract.compact import Format
from folklore.contract.recall import answer_json
from folklore.db.database import Database
from folklore.embedding.protocol import Model
from folklore.memory.context import MemoryContext
from folklore.model import Draft, Relation
from tests import embedders
from tests.person import NOON, Person, contents

# By kind: a question, a text with a gap, and the words in that gap before and after the decision was reversed.
PAIRS: dict[str, tuple[tuple[str, str, str, str], ...]] = {
    "negation": (
        ("do we cache search results?", "We {} search results in Redis.", "cache", "do not cache"),
        ("do integration tests run on pulls?", "The integration tests {} run on pull requests.", "do", "do not"),
        ("may handlers call the billing API?", "Handlers may {} call the billing API directly.", "always", "never"),
        ("is the admin page behind the VPN?", "The admin page is {} behind the VPN.", "now", "no longer"),
        ("are e-mail addresses validated?", "The importer {} e-mail addresses.", "validates", "does not validate"),
        ("are nightly builds signed?", "Nightly builds are {}signed with the release key.", "", "not "),
        ("do we squash commits?", "We {} commits when a branch is merged.", "squash", "don't squash"),
        ("is Python 3.9 supported?", "The client library {} Python 3.9.", "supports", "does not support"),
    ),
    "order": (
        ("when do we retry?", "We retry {} acknowledging the message.", "before", "after"),
        ("when do migrations run?", "Migrations run {} the new pods start.", "before", "after"),
        ("when is the cache warmed?", "Warm the cache {} switching traffic over.", "before", "after"),
        ("when do we tag a release?", "Tag the release {} the smoke test passes.", "before", "after"),
        ("when is the invoice mailed?", "The invoice is mailed {} the card is charged.", "before", "after"),
        ("when are logs redacted?", "Logs are redacted {} they leave the host.", "before", "after"),
        ("when does the linter run?", "The linter runs {} the unit tests in CI.", "before", "after"),
    ),
    "switch": (
        ("is autovacuum on for the events table?", "Autovacuum is {} for the events table.", "on", "off"),
        ("is the dark theme enabled?", "The dark theme flag is {} in production.", "enabled", "disabled"),
        ("do we compress at the load balancer?", "Turn gzip {} at the load balancer.", "on", "off"),
        ("is telemetry opt-in?", "Telemetry of the desktop client is {}.", "opt-in", "opt-out"),
        ("do guests see feature previews?", "Feature previews are {} guests.", "shown to", "hidden from"),
        ("is strict mode on in the compiler?", "Strict mode of the compiler is switched {}.", "on", "off"),
        ("how does the circuit breaker start?", "The circuit breaker starts {}.", "open", "closed"),
    ),
    "permission": (
        ("may we force push?", "Force pushes are {} on release branches.", "allowed", "forbidden"),
        ("may we use lodash?", "Lodash is {} in the web client.", "permitted", "prohibited"),
        ("who can read production logs?", "Contractors {} read production logs.", "can", "cannot"),
        ("does the firewall let SSH in?", "The firewall {} SSH from the office network.", "allows", "blocks"),
        ("are anonymous uploads accepted?", "The upload endpoint {} anonymous clients.", "accepts", "rejects"),
        ("are wildcard imports allowed?", "Wildcard imports are {} in test modules.", "allowed", "banned"),
        ("is vendored code in the coverage?", "Coverage reports {} vendored code.", "include", "exclude"),
    ),
    "roles": (
        ("who calls the stock service?", "{} service.", "Orders calls the stock", "Stock calls the orders"),
        ("who reviews the data team?", "The {} team.", "web team reviews the data", "data team reviews the web"),
        ("what replaced RabbitMQ?", "We replaced {} for job queues.", "Kafka with RabbitMQ", "RabbitMQ with Kafka"),
        ("which region is primary?", "{} the standby.", "Bonn is primary, Cork is", "Cork is primary, Bonn is"),
        ("who pushes metrics?", "The {}.", "gateway pushes metrics to an agent", "agent pushes metrics to a gateway"),
        ("composition or inheritance?", "Prefer {}.", "composition over inheritance", "inheritance over composition"),
        ("which schema is copied where?", "We copy {} at night.", "the test schema to live", "the live schema to test"),
        ("who approves expenses?", "{}.", "Ana approves the expenses of Tom", "Tom approves the expenses of Ana"),
    ),
    "value": (
        ("which database holds invoices?", "The billing service stores invoices in {}.", "Postgres", "MySQL"),
        ("on which day do we deploy?", "Deployments of the web shop happen on {}.", "Tuesday", "Thursday"),
        ("which log level has production?", "The log level in production is {}.", "info", "warning"),
        ("which package manager do we use?", "Use {} as the package manager of the web client.", "npm", "pnpm"),
        ("how are dates formatted?", "Dates in the public API are in {} time.", "local", "universal"),
        ("which branch is the default?", "The default branch of every repository is {}.", "master", "main"),
        ("where is the session identifier?", "The session identifier travels in a {}.", "cookie", "header"),
        ("who hosts the backups?", "Backups are hosted at {}.", "Amazon", "Hetzner"),
    ),
    "owner": (
        ("who owns the payment service?", "{} owns the payment service.", "Maria", "Jonas"),
        ("who is on call for search?", "{} is on call for the search cluster.", "Priya", "Diego"),
        ("which team maintains the mobile SDK?", "The {} team maintains the mobile SDK.", "growth", "core"),
        ("who allows security exceptions?", "Security exceptions are signed off by {}.", "Helen", "Victor"),
        ("who keeps the certificate?", "{} keeps the certificate for signing installers.", "Olga", "Sven"),
        ("who leads the migration?", "The migration to Kubernetes is led by {}.", "Chen", "Fatima"),
        ("who knows the data warehouse?", "Ask {} about the data warehouse.", "Peter", "Lucia"),
    ),
    "amount": (
        ("how often do we retry a webhook?", "A failed webhook is retried {} times.", "three", "five"),
        ("what is the timeout of the client?", "The HTTP client has a timeout of {} seconds.", "30", "10"),
        ("how long are access logs kept?", "Access logs are kept for {} days.", "90", "14"),
        ("how many approvals does a merge need?", "A merge into main needs {}.", "two approvals", "one approval"),
        ("how large may an attachment be?", "An attachment may be up to {} MB.", "25", "100"),
        ("how many connections has the pool?", "The connection pool of the API holds {} connections.", "20", "50"),
        ("what is the rate limit per client?", "The rate limit per client is {} requests a minute.", "100", "600"),
        ("how much memory have the workers?", "Each worker may use {} of memory.", "512 megabytes", "2 gigabytes"),
    ),
}  # fmt: skip


@pytest.fixture
async def notes(person: Person) -> Person:
    """All decisions, and months later their reversals."""
    decisions = [
        (text.format(before), text.format(after))
        for kind in PAIRS.values()
        for _, text, before, after in kind
    ]
    for half, days in ((0, 120), (1, 0)):
        await person.at(NOON - timedelta(days=days)).keep(
            *(decision[half] for decision in decisions)
        )
    return person


async def test_a_decision_and_its_reversal_are_both_in_the_answer_the_newer_half_first(
    notes: Person,
) -> None:
    wrong = []
    for kind, pairs in PAIRS.items():
        for question, text, before, after in pairs:
            halves = [text.format(after), text.format(before)]
            found = contents(await notes.recall(question, limit=10))
            if [half for half in found if half in halves] != halves:
                wrong.append((kind, question))

    assert wrong == []


async def test_contradictions_are_shown_in_every_format_until_one_side_is_gone(
    person: Person,
) -> None:
    old, new = await person.keep("The queue is RabbitMQ.", "Messages travel by NATS.")
    await person.relate(Relation(new, "contradicts", old))
    question = "which queue carries messages?"

    for form in get_args(Format):
        answer = answer_json(await person.recall(question), form)
        shown = {entry["id"]: entry["contradicts"] for entry in answer["memories"]}
        assert shown == {str(old): [str(new)], str(new): [str(old)]}
    await person.forget(new)

    assert [
        result.contradicts for result in (await person.recall(question)).memories
    ] == [()]


async def test_both_halves_come_before_what_has_nothing_to_do_with_the_question(
    person: Person,
) -> None:
    rest = [pairs[-1][1].format(pairs[-1][2]) for pairs in PAIRS.values()]
    before, after = (
        f"We retry {when} acknowledging the message." for when in ("before", "after")
    )
    await person.at(NOON - timedelta(days=120)).keep(before)
    await person.keep(
        *rest, *(f"Sprint {number} was planned on a Monday." for number in range(8))
    )
    await person.keep(after)

    found = contents(await person.recall("when do we retry?"))

    assert set(found[:2]) == {before, after}


async def test_every_value_of_a_decision_that_changed_five_times_is_found(
    person: Person,
) -> None:
    values = [
        f"The HTTP client has a timeout of {seconds} seconds."
        for seconds in (5, 10, 20, 30, 60)
    ]
    for age, value in enumerate(reversed(values)):
        await person.at(NOON - timedelta(days=30 * age)).keep(value)
    await person.keep(*(text.format(before) for _, text, before, _ in PAIRS["value"]))

    found = contents(await person.recall("what is the timeout of the HTTP client?"))

    assert set(values) <= set(found)


async def test_a_newer_decision_beyond_the_results_comes_first_if_it_is_newer_by_a_day(
    person: Person,
) -> None:
    services = ("billing", "stock", "search", "mail", "login")
    before = await person.keep(
        *(f"A failed webhook of {name} is retried three times." for name in services)
    )
    await person.keep(
        *(f"Sprint {number} was planned on a Monday." for number in range(20))
    )
    for hours, count in ((23, "seven"), (25, "nine")):
        (after,) = await person.at(NOON + timedelta(hours=hours)).keep(
            f"A failed webhook is retried {count} times."
        )
        answer = await person.at(NOON + timedelta(days=3)).recall(
            "a failed webhook is retried three times?", limit=1
        )
        assert answer.memories[0].memory.id in ([after] if hours > 24 else before)
        await person.forget(after)


@pytest.mark.parametrize("days", [90, 0.5])
@pytest.mark.parametrize(
    ("question", "before", "after", "same"),
    [
        ("are invoices of the mail service in a batch at night?",
         "The mail service sends invoices at night in one batch, after the accounts were closed for the day.",
         "Invoices are no longer sent in a nightly batch: mail goes out as soon as each order is paid.", True),
        ("on which day are production deploys made?",
         "Production deploys are made on Tuesdays from the main branch, by whoever is on call that week.",
         "Whoever is on call that week writes a report about production deploys, which the team reads on Mondays.",
         False),
        ("which port does the billing service use for metrics?",
         "The billing service serves metrics on port 9102, behind the gateway of the shop.",
         "The mail service is served on port 9102 by the gateway of the shop, behind the proxy.", False),
        ("what is in shop/ledger.py?", "shop/ledger.py keeps the ledger of the shop in thirteen statements.",
         "The ledger of the shop keeps thirteen statements of each year.", False),
    ],
)  # fmt: skip
async def test_the_newer_of_two_comes_first_only_on_one_subject(
    person: Person, question: str, before: str, after: str, days: float, *, same: bool
) -> None:
    await person.at(NOON - timedelta(days=days)).keep(before)
    await person.keep(
        after, *(f"Sprint {number} was planned on a Monday." for number in range(20))
    )

    assert contents(await person.recall(question))[0] == (
        after if same and days > 1 else before
    )


BEFORE = "The mail service sends invoices at night in one batch, after the accounts were closed for the day."
AFTER = "Invoices are no longer sent in a nightly batch: mail goes out as soon as each order is paid."


class AtAnAngle(embedders.ByLetter):
    """Gives BEFORE and the question one vector, AFTER another of a given cosine with it, and the rest a third."""

    def __init__(self, cosine: float, *, contextual: bool) -> None:
        super().__init__()
        self.cosine = cosine
        self.contextual = contextual

    async def model(self) -> Model:
        return Model("fake", f"angle-{self.contextual}", 8, contextual=self.contextual)

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = np.zeros((len(texts), 8), dtype=np.float32)
        for place, text in enumerate(texts):
            if text == AFTER:
                vectors[place, :2] = self.cosine, (1.0 - self.cosine**2) ** 0.5
            else:
                vectors[place, 2 if text.startswith("Sprint") else 0] = 1.0
        return vectors

    async def probe(self) -> NDArray[np.float32]:
        vector = np.zeros(8, dtype=np.float32)
        vector[7] = 1.0
        return vector


@pytest.mark.parametrize(
    ("cosine", "contextual", "same"),
    [(0.64, False, False), (0.69, False, True), (0.69, True, False), (0.75, True, True)],
)  # fmt: skip
async def test_which_texts_are_on_one_subject_follows_from_the_model(
    database: Database, cosine: float, *, contextual: bool, same: bool
) -> None:
    person = Person(
        MemoryContext.of(database, AtAnAngle(cosine, contextual=contextual))
    )
    await person.at(NOON - timedelta(days=90)).keep(BEFORE)
    await person.keep(
        AFTER, *(f"Sprint {number} was planned on a Monday." for number in range(20))
    )

    found = contents(
        await person.recall("are invoices of the mail service in a batch at night?")
    )

    assert found[0] == (AFTER if same else BEFORE)


@pytest.mark.parametrize(
    ("kind", "dialogue"), [("note", True), ("episodic", True), ("decision", False)]
)
async def test_a_turn_of_a_dialogue_does_not_replace_one_of_another_session(
    person: Person, kind: str, *, dialogue: bool
) -> None:
    for days, session, said in ((90, "spring", BEFORE), (0, "summer", AFTER)):
        lines = [f"How is the shop this {session}?", said, f"And what a {session}!"]
        await person.at(NOON - timedelta(days=days)).keep(
            *(Draft(line, kind=kind, session=session) for line in lines)
        )

    found = contents(
        await person.recall("are invoices of the mail service in a batch at night?")
    )

    assert found[0] == (BEFORE if dialogue else AFTER)


async def test_facts_that_name_a_session_each_still_replace_each_other(
    person: Person,
) -> None:
    for days, session, said in ((90, "spring", BEFORE), (0, "summer", AFTER)):
        await person.at(NOON - timedelta(days=days)).keep(Draft(said, session=session))

    found = contents(
        await person.recall("are invoices of the mail service in a batch at night?")
    )

    assert found[0] == AFTER
