"""Whether what is known by its name is found by it: one right memory, first or among five."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from folklore.bench.ablation import everything
from folklore.bench.assistant import Arguments, Assistant, Kept
from folklore.bench.known_items import KnownItem
from folklore.bench.metrics import hit_at, mean
from folklore.bench.retrieval import Tell
from folklore.bench.sources import Noted

TOOLS = ("memory_recall", "search_keywords")
_MISSES_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Answered:
    """A question and the sources that each tool brought."""

    item: KnownItem
    sources: dict[str, list[str]]

    def hit(self, tool: str, k: int) -> float:
        """1 if the right memory is among the first k."""
        return hit_at(k, self.sources[tool], {str(self.item.answer)})


@dataclass(frozen=True, slots=True)
class Found:
    """What a run gave; `made_of` is how many distributions; `unasked` items had their memory refused."""

    made_of: int
    kept: Kept
    notes: Sequence[Noted]
    answered: list[Answered]
    unasked: int

    def scores(self) -> dict[str, dict[str, float]]:
        """hit@1 and hit@5 of each tool, over all questions and by category."""
        by_category: dict[str, list[Answered]] = {"all": self.answered}
        for one in self.answered:
            by_category.setdefault(one.item.category, []).append(one)
        return {
            name: {"questions": len(held)}
            | {f"{tool} hit@{k}": mean([one.hit(tool, k) for one in held]) for tool in TOOLS for k in (1, 5)}
            for name, held in by_category.items()
        }

    def misses(self) -> dict[str, list[dict[str, Any]]]:
        """By category, the first few questions that memory_recall did not answer first, with the place of the answer
        and what came first instead."""
        found: dict[str, list[dict[str, Any]]] = {}
        for one in self.answered:
            held = found.setdefault(one.item.category, [])
            sources = one.sources["memory_recall"]
            if one.hit("memory_recall", 1) or len(held) >= _MISSES_SHOWN:
                continue
            right = str(one.item.answer)
            held.append(
                {
                    "query": one.item.query,
                    "place": sources.index(right) + 1 if right in sources else None,
                    "answer": self.notes[one.item.answer].content[:200],
                    "first": self.notes[int(sources[0])].content[:200] if sources else None,
                }
            )
        return {category: held for category, held in found.items() if held}

    def as_json(self) -> dict[str, Any]:
        """All of it, rounded."""
        return {
            "distributions": self.made_of,
            "stored": self.kept.stored,
            "refused": self.kept.refused,
            "not_asked": self.unasked,
            "scores": {
                part: {name: value if name == "questions" else round(value, 4) for name, value in found.items()}
                for part, found in self.scores().items()
            },
            "misses": self.misses(),
        }


async def find(
    assistant: Assistant,
    notes: Sequence[Noted],
    items: Sequence[KnownItem],
    tell: Tell,
    *,
    made_of: int,
    namespace: str,
    limit: int,
    options: Arguments,
) -> Found:
    """Store the notes and ask for each item through both tools; not for those whose memory was refused."""
    memories = [{"content": note.content, "source": str(place)} for place, note in enumerate(notes)]
    await assistant.keep(namespace, memories)
    there = set((await everything(assistant))[0].values())
    asked = [item for item in items if str(item.answer) in there]
    tell(0, f"stored {len(notes):,}")
    words = {name: value for name, value in options.items() if name == "filters"}  # all that both tools take
    answered = []
    for place, item in enumerate(asked, start=1):
        recalled = await assistant.ask(item.query, [namespace], limit, options)
        searched = await assistant.ask(item.query, [namespace], limit, words, tool="search_keywords")
        answered.append(Answered(item, {"memory_recall": recalled.sources, "search_keywords": searched.sources}))
        tell(place, f"asked {place:,} of {len(asked):,}")
    return Found(made_of, assistant.kept, notes, answered, len(items) - len(asked))
