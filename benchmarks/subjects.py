"""Stores of memories whose project has an older one that they reverse: does the answer name it, and what else?

    python -m benchmarks.subjects prompts.jsonl --cues prompts.cues.jsonl

The set has moments with `outdated` (benchmarks.moments). The memories of each project are stored one at a time, from
the oldest on, as they would come. A pair is an outdated memory and, of the evidence beside it, the one that came later
and is named as on its subject, or else the last. Every other store that names a memory counts as beside the point,
although some are on one subject.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import click

from benchmarks.command_line import main, print_json, print_table, track
from benchmarks.moments import Moment, read_cues, read_moments, with_cues
from benchmarks.store import open_store
from folklore.contract.memories import StoreRequest
from folklore.model import Draft
from tests.doors import own_service


def reversals(moments: Sequence[Moment]) -> dict[tuple[str, str], set[str]]:
    """Return the evidence that may reverse each outdated memory, by namespace and source."""
    newer: dict[tuple[str, str], set[str]] = {}
    for moment in moments:
        for source in moment.outdated:
            newer.setdefault((moment.namespace, source), set()).update(moment.evidence)
    return newer


async def named_by(
    memories: Mapping[str, Sequence[Mapping[str, Any]]],
) -> dict[tuple[str, str], list[str]]:
    """Store memories from the oldest on; return the sources that each answer names as on the subject."""
    named: dict[tuple[str, str], list[str]] = {}
    async with open_store() as store:
        for namespace, held in memories.items():
            sources: dict[UUID, str] = {}
            for fields in track(sorted(held, key=_time), namespace):
                request = StoreRequest(memories=(_draft(fields),), namespace=namespace)
                [item] = (await own_service(store.app).call(request)).stored
                sources[item.id] = fields["source"]
                others = [one.id for one in item.similar]
                others += [one.id for one in item.same_subject]
                named[namespace, fields["source"]] = [sources[id_] for id_ in others]
    return named


def _time(fields: Mapping[str, Any]) -> str:
    return str(fields.get("occurred_at") or "")


def _draft(fields: Mapping[str, Any]) -> Draft:
    names = ("content", "summary", "source", "kind")
    given = {name: fields[name] for name in names if fields.get(name)}
    return Draft(**given, cues=tuple(fields.get("cues", ())))


@click.command()
@click.argument("moments_path", metavar="SET", type=click.Path(path_type=Path))
@click.option(
    "--cues",
    "cues_path",
    type=click.Path(path_type=Path, dir_okay=False),
    help="JSON Lines with the cues of memories, by namespace and source.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def subjects(moments_path: Path, cues_path: Path | None, as_json: bool) -> None:
    """Measure which older memories the answers to stores name."""
    memories, moments = read_moments(moments_path)
    cues = {} if cues_path is None else read_cues(cues_path)
    named = asyncio.run(named_by(with_cues(memories, cues)))
    pairs = reversals(moments)
    found = 0
    reversing: set[tuple[str, str]] = set()
    for (namespace, older), newer in pairs.items():
        naming = {one for one in newer if older in named.get((namespace, one), ())}
        found += bool(naming)
        reversing |= {(namespace, one) for one in naming or newer}
    others = [names for key, names in named.items() if key not in reversing]
    row = {
        "pairs": len(pairs),
        "named": found / max(len(pairs), 1),
        "other stores": len(others),
        "that name one": sum(map(bool, others)) / max(len(others), 1),
    }
    if as_json:
        print_json(row)
    else:
        print_table([row])


if __name__ == "__main__":
    main(subjects)
