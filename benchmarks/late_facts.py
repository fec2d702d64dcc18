"""Facts late in long notes: each asked in other words, with other notes of its subject in the same project.

Of the two questions about a fact, the first has about half of its words, the second next to none.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass

import click

from benchmarks.command_line import main, print_table
from benchmarks.store import Store, open_store

_NAMESPACE = "late-facts"
_LENGTH = 20_000
_LATE = 0.95
# Other notes of the subject of a fact: of the same length, and of one paragraph.
_LONG = 3
_SHORT = 6
_SUBJECTS = """
invoices | credit note, invoice run, tax number, ledger, refund, currency, customer account, payment reminder
Credit notes below five euros are never posted; the finance team writes them off at the end of the quarter.
are credit notes of a few euros posted, or what does finance do with them?
what do we do with tiny refunds, are they booked?

search | index, query, synonym, shard, ranking, analyser, result page, suggestion
A full rebuild of the index must run from the Frankfurt cluster, because only there the disks are large enough.
from which cluster do I rebuild the whole index, and why there?
where do I have to start when everything needs to be reindexed?

shipping labels | label printer, parcel, carrier, tracking number, depot, customs form, weight, pickup
The Zebra in the back office prints blank pages when its ribbon sensor is dusty; blow it out with compressed air.
the Zebra in the office prints empty labels again, what helps?
labels come out of the Zebra empty, how do we fix it?

sign-in | session, password, token, second factor, account, cookie, single sign-on, lockout
Support may lift a lockout only after a call back to the number in the contract.
what must support check before it lifts a customer's lockout?
a customer locked himself out, what must we check before we unlock him?

backups | snapshot, restore, archive, bucket, retention, database, replica, schedule
Every first Monday one randomly chosen customer is restored to a scratch machine, and the row counts are compared.
how do we test that a customer's data can really be restored?
how do we test that our backups can really be restored?

mobile app | release, crash report, push message, store review, screen, offline mode, permission, update
Phones with less than two gigabytes of memory get the list without pictures, because decoding them killed the app.
why does the list have no pictures on phones with little memory?
why are there no images on cheap devices?

data warehouse | pipeline, table, partition, report, dashboard, schema, load, quality check
The nightly load waits for the exchange rates of the central bank, which arrive at half past four.
what does the load wait for at night, and when do the exchange rates come?
why does the warehouse not fill before the early morning?

monitoring | alert, dashboard, metric, log, probe, threshold, on-call, incident
Alerts of the staging cluster go to a muted channel since they woke the on-call engineer eleven times in May.
who is woken up when an alert of the staging cluster fires?
who gets notified when staging breaks?

email delivery | bounce, template, sender, queue, complaint, domain, newsletter, unsubscribe
Hotmail rejects our mails when more than forty connections are open, so the sender is limited to twenty.
why do we limit the number of open connections to Hotmail?
why do we throttle parallel connections to Microsoft mailboxes?

warehouse robots | charger, route, shelf, sensor, battery, floor map, gripper, safety zone
Robots drive at half speed in aisle nine because the sun through the roof window blinds their cameras.
why are the robots so slow in aisle nine?
why are they so slow in one of the aisles?

recipe site | ingredient, unit, photo, comment, rating, oven, portion, search filter
Cups are always converted with the American size of 237 millilitres, never with the metric one.
how many millilitres is a cup in our conversion?
how large is a cup in our unit conversion?

school timetable | teacher, room, lesson, substitute, holiday, exam, group, bell
Chemistry is never planned in the last lesson, since the caretaker switches off the gas at three.
can chemistry be planned for the end of the school day?
can we put a chemistry class late in the afternoon?

wind farm | turbine, blade, gearbox, forecast, grid, inspection, anemometer, crew
Turbine fourteen stops at dusk between May and September because of the bats in the old quarry.
why is turbine fourteen switched off on summer evenings?
which machine has to stand still in summer evenings, and for what animals?

clinic appointments | patient, slot, reminder, doctor, referral, waiting list, insurance, cancellation
Reminders by text message leave out the department, since relatives often read the phone.
why does the text message not say which department the visit is in?
why doesn't the SMS say which department the visit is in?

translation | string, glossary, locale, plural, translator, review, placeholder, export
The Finnish texts are reviewed by an agency in Turku, because drafts of the machine mixed formal and informal address.
who reviews what we publish in Finnish, and why not the machine?
who checks what we publish in Finland?

game server | match, lobby, player, region, tick, replay, patch, ranking
Replays older than three patches cannot be opened, since the physics changed; we keep them for disputes only.
can players still open replays of old patches?
can players still watch recordings of old versions?

library catalogue | loan, reader, shelf mark, reservation, fine, branch, scanner, import
Fines of children are cancelled automatically on the first of June, by decision of the city council.
what happens to the fines of children in summer?
what happens to the overdue fees of kids?

bakery orders | dough, oven, order, delivery, shop, batch, allergen, price list
Orders with nuts are baked last on the second oven, which is cleaned before the night shift ends.
on which oven do we bake what contains nuts, and when?
when do we make the products that contain nuts, because of allergies?

video encoding | codec, bitrate, segment, player, thumbnail, worker, queue, subtitle
Clips from drones are decoded on the processor, since the graphics driver loses every tenth frame of them.
why are clips of drones not decoded on the graphics card?
why is hardware decoding turned off for drone footage?

tenant billing | meter, flat, heating, landlord, reading, statement, deposit, caretaker
If a meter was not read for two years, the mean of the three neighbouring flats is charged.
what is charged for a flat whose meter was not read for years?
how is consumption estimated when nobody took a reading for a long time?
"""
_SENTENCES = (
    "The {a} was looked at again in {month}, and {person} wrote down that the {b} has to be ready before it.",
    "Nobody could say at first why the {a} depends on the {b}.",
    "We agreed with {person} to keep the {a} as it is until {month}.",
    "For each {a} there is one {b}, and the {c} names both.",
    "{person} asked in {month} that the {a} be shown next to the {b}.",
    "The number of changes to the {a} fell by {number} percent after the {b} was simplified.",
    "A {a} without a {b} is allowed, but it has to be reported to {person}.",
    "The old {a} is still in use in two places, where the {c} needs it.",
    "If the {a} takes longer than {number} minutes, the {b} is started again.",
    "There were {number} questions about the {a} this year, most of them because of the {b}.",
    "The meeting in {month} was about the {a}, the {b} and the {c}.",
    "What the {a} costs was compared with the {b}; the difference was below {number} euros a day.",
    "When the {a} changes, the {b} must be told, and {person} keeps the list.",
    "The first version of the {a} had no {b}, which nobody missed until {month}.",
    "It is planned to move the {a} to the new team, with the {c} following later.",
    "After the {a} failed in {month}, the {b} was checked by hand for {number} days.",
    "The {c} should be read together with the {a}; {person} explains it to new colleagues.",
    "Twice a year the {a} is compared with the {b} of the other office.",
)
_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "July",
    "August",
    "October",
    "November",
)
_PEOPLE = ("Marta", "Jonas", "Priya", "Tom", "Leila", "Sven", "Grace", "Hugo")


@dataclass(frozen=True, slots=True)
class Subject:
    """A subject with the nouns of its notes, the fact of one of them, and the questions about it."""

    name: str
    nouns: tuple[str, ...]
    fact: str
    questions: tuple[str, ...]


def subjects() -> list[Subject]:
    """Return the subjects."""
    found = []
    for block in _SUBJECTS.strip().split("\n\n"):
        title, fact, *questions = block.splitlines()
        name, _, nouns = title.partition(" | ")
        found.append(Subject(name, tuple(nouns.split(", ")), fact, tuple(questions)))
    return found


def note(subject: Subject, length: int, rng: random.Random, fact: str = "") -> str:
    """Return a note of about this length in paragraphs, with the fact in its last tenth."""
    paragraphs = [f"# {subject.name.capitalize()}"]
    size = 0
    while size < length:
        sentences = [_sentence(subject, rng) for _ in range(rng.randint(3, 7))]
        if fact and size >= length * _LATE:
            sentences.insert(len(sentences) // 2, fact)
            fact = ""
        paragraphs.append(" ".join(sentences))
        size += len(paragraphs[-1])
    return "\n\n".join([*paragraphs, *([fact] if fact else [])])


def _sentence(subject: Subject, rng: random.Random) -> str:
    a, b, c = rng.sample(subject.nouns, 3)
    person = rng.choice(_PEOPLE)
    month = rng.choice(_MONTHS)
    number = rng.randint(3, 90)
    return rng.choice(_SENTENCES).format(
        a=a, b=b, c=c, person=person, month=month, number=number
    )


async def measure() -> list[dict[str, object]]:
    """Return for each fact the place of its note, 0 if it was not found, and if the answer shows it."""
    rng = random.Random(28)
    async with open_store() as store:
        for subject in subjects():
            notes = [
                (f"{subject.name}: fact", note(subject, _LENGTH, rng, subject.fact))
            ]
            notes += [
                (f"{subject.name}: {place}", note(subject, _LENGTH, rng))
                for place in range(_LONG)
            ]
            notes += [
                (f"{subject.name}: short {place}", note(subject, 300, rng))
                for place in range(_SHORT)
            ]
            await store.add(
                _NAMESPACE,
                [{"content": text, "source": source} for source, text in notes],
            )
        return [await _asked(store, subject) for subject in subjects()]


async def _asked(store: Store, subject: Subject) -> dict[str, object]:
    row: dict[str, object] = {"subject": subject.name}
    for number, question in zip(("half", "few"), subject.questions, strict=True):
        answer = await store.call(
            "memory_recall", {"query": question, "namespaces": [_NAMESPACE]}
        )
        sources = [memory.get("source") for memory in answer["memories"]]
        source = f"{subject.name}: fact"
        place = sources.index(source) if source in sources else None
        shown = place is not None and subject.fact in " ".join(
            answer["memories"][place]["content"].split()
        )
        row |= {
            f"{number}: place": 0 if place is None else place + 1,
            f"{number}: shown": shown,
        }
    return row


@click.command()
def late_facts() -> None:
    """Ask for 20 facts that are late in notes of 20,000 characters, in a scratch store."""
    rows = asyncio.run(measure())
    print_table(rows)
    for number in ("half", "few"):
        first = [row for row in rows if row[f"{number}: place"] == 1]
        click.echo(
            f"{number} of the words: first {len(first)} of {len(rows)}, ", nl=False
        )
        click.echo(f"shown {sum(bool(row[f'{number}: shown']) for row in first)}")


if __name__ == "__main__":
    main(late_facts)
