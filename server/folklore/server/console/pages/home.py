"""Home: projects, newest and pinned memories, changes of the week, what wants attention, numbers by day."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from starlette.responses import Response

from folklore.contract.filters import FiltersRequest
from folklore.contract.memories import ListRequest
from folklore.contract.namespaces import ListNamespacesRequest
from folklore.contract.review import DONE, Attention, AuthorChanges, OverviewRequest
from folklore.server.console.pages.projects import Projects
from folklore.server.console.visit import Visit

# Memories of a list, projects of a page, projects that want attention, people of a week: the page stays small.
_MEMORIES = 6
_PROJECTS = 20
_URGENT = 10
_PEOPLE = 12
# Sizes of a chart, of which the picture is scaled to the page.
_HEIGHT = 60
_DAY = 10
_EVERYWHERE = ("*",)
_PINNED = FiltersRequest.model_validate({"pinned": True})


@dataclass(frozen=True, slots=True)
class Chart:
    """Numbers by day as bars (left, top, height) of one colour, with their sum and the highest; 0 has no bar."""

    noun: str
    fill: str
    width: int
    height: int
    bars: Sequence[tuple[int, float, float]]
    total: int
    most: int

    @classmethod
    def of(cls, noun: str, fill: str, numbers: Sequence[int]) -> Chart:
        """Scale the numbers of some days to the highest."""
        most = max(numbers)
        bars = []
        for day, number in enumerate(numbers):
            if number:
                height = round(_HEIGHT * number / most, 1)
                bars.append((day * _DAY + 1, round(_HEIGHT - height, 1), height))
        return cls(noun, fill, len(numbers) * _DAY, _HEIGHT, bars, sum(numbers), most)


async def show(visit: Visit) -> Response:
    """Show the home page."""
    newest = ListRequest(namespaces=_EVERYWHERE, limit=_MEMORIES)
    pinned = ListRequest(
        namespaces=_EVERYWHERE, filters=_PINNED, sort="updated_desc", limit=_MEMORIES
    )
    overview, namespaces, newest_memories, pinned_memories = await asyncio.gather(
        visit.call(OverviewRequest(namespaces=_EVERYWHERE)),
        visit.call(ListNamespacesRequest()),
        visit.call(newest),
        visit.call(pinned),
    )
    return await visit.render(
        "home.html",
        overview=overview,
        attention=_most_urgent(overview.attention),
        projects=Projects.of(visit, namespaces, _PROJECTS),
        newest=newest_memories,
        pinned=pinned_memories,
        people=_people(overview.changes),
        charts=(
            Chart.of("stored", "one", [day.stored for day in overview.days]),
            Chart.of("recalled", "two", [day.recalled for day in overview.days]),
        ),
    )


def _most_urgent(attention: Sequence[Attention]) -> Sequence[Attention]:
    def decisions(item: Attention) -> tuple[int, int]:
        return item.contradictions + item.similar + item.unused, item.pending_embeddings

    return sorted(attention, key=decisions, reverse=True)[:_URGENT]


def _people(changes: Sequence[AuthorChanges]) -> Sequence[tuple[str, Sequence[str]]]:
    """Return the people with most changes of the week, and these."""
    by_author = defaultdict[str, list[str]](list)
    for change in changes:
        by_author[change.author].append(f"{DONE[change.action]} {change.memories:,}")
    return list(by_author.items())[:_PEOPLE]
