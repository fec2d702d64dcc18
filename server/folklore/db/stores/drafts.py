"""Places of drafts in their sessions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from folklore.model import Draft


def steps(drafts: Iterable[Draft]) -> Iterator[int]:
    """Yield for each draft the number of earlier drafts of its session that leave their position open too."""
    counted: dict[str | None, int] = {}
    for draft in drafts:
        step = counted.get(draft.session, 0)
        if draft.position is None:
            counted[draft.session] = step + 1
        yield step
