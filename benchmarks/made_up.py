"""Made-up memories: words of the bundled model's vocabulary in Zipf's distribution, with the fields of real ones.

The same seed gives the same memories. No text comes from anyone's notes.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from itertools import accumulate
from pathlib import Path
from typing import Any

# The projects, and the share of the memories in each.
PROJECTS = {"shop": 0.6, "billing": 0.2, "search-service": 0.15, "handbook": 0.05}
_KINDS = {
    "note": 50,
    "decision": 15,
    "bug": 15,
    "procedural": 10,
    "semantic": 7,
    "episodic": 3,
}
_TOPICS = (
    *(
        "deploy",
        "database",
        "api",
        "tests",
        "frontend",
        "security",
        "performance",
        "docs",
        "build",
        "payments",
    ),
    *(
        "search",
        "queue",
        "cache",
        "login",
        "mail",
        "export",
        "mobile",
        "backup",
        "metrics",
        "release",
    ),
)
_PEOPLE = 24
_TICKETS = 4_000
_DAYS = 730
_END = datetime(2026, 11, 1, tzinfo=UTC)


class Words:
    """The whole words of the bundled model's vocabulary, most frequent first, drawn by Zipf's law."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._words = _vocabulary()
        self._cumulated = list(
            accumulate(1 / (rank + 3) for rank in range(len(self._words)))
        )

    def draw(self, count: int) -> list[str]:
        """Return so many words."""
        return self._rng.choices(self._words, cum_weights=self._cumulated, k=count)

    def sentence(self) -> str:
        """Return a sentence of 5 to 16 words; one in four names a ticket, a file or a function."""
        words = self.draw(self._rng.randint(5, 16))
        if self._rng.random() < 0.25:
            words.insert(self._rng.randint(1, len(words)), self._name())
        return f"{' '.join(words).capitalize()}."

    def _name(self) -> str:
        first, second = self.draw(2)
        number = self._rng.randint(1, _TICKETS)
        return self._rng.choice(
            (f"SHOP-{number}", f"src/{first}/{second}.py", f"{first}_{second}()")
        )


def memories(count: int, seed: int = 18) -> Iterator[dict[str, Any]]:
    """Yield memories as lines of an import have them."""
    rng = random.Random(seed)
    words = Words(rng)
    people = [
        f"{first}-{second}"
        for first, second in zip(*[iter(words.draw(2 * _PEOPLE))] * 2, strict=True)
    ]
    for _ in range(count):
        at = _END - timedelta(days=_DAYS * rng.random() ** 2)
        yield {
            "content": " ".join(words.sentence() for _ in range(rng.randint(1, 5))),
            "namespace": rng.choices(list(PROJECTS), list(PROJECTS.values()))[0],
            "kind": rng.choices(list(_KINDS), list(_KINDS.values()))[0],
            "tags": sorted(
                {f"topic/{rng.choice(_TOPICS)}" for _ in range(rng.randint(0, 3))}
            ),
            # A few people write most.
            "author": people[int(_PEOPLE * rng.random() ** 2)],
            "created_at": at.isoformat(timespec="seconds"),
        }


def questions(count: int, seed: int = 19) -> list[str]:
    """Return questions of two to five words, as people type them: of the texts' words, rarer ones more often."""
    rng = random.Random(seed)
    words = Words(rng)
    asked = []
    for _ in range(count):
        drawn = [word for word in words.draw(40) if len(word) > 3]
        asked.append(" ".join(drawn[: rng.randint(2, 5)]))
    return asked


def _vocabulary() -> list[str]:
    spec = find_spec("wordllama")
    assert spec is not None
    assert spec.origin is not None
    file = Path(spec.origin).parent / "tokenizers" / "l2_supercat_tokenizer_config.json"
    places: dict[str, int] = json.loads(file.read_bytes())["model"]["vocab"]
    return [
        word[1:]
        for word in sorted(places, key=places.__getitem__)
        if re.fullmatch("\u2581[a-z]{3,}", word)
    ]
