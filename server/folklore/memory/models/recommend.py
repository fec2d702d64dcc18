"""Measure on stored memories what a switch to another embedding model would gain and cost.

The gain is measured over known items: a title, a first sentence or half of a short text is the question, and the rest
of that text is to be found among the rests of all sampled memories, by cosine alone. Questions that people asked are
not stored.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from math import ceil
from time import monotonic
from uuid import UUID

from folklore.contract.models import ModelMeasure, Recommendation, RecommendModelRequest
from folklore.db.stores.embeddings import Embeddings
from folklore.embedding import passage_rule
from folklore.errors import NotFound
from folklore.lazy import NDArray, numpy as np
from folklore.memory.context import RequestContext
from folklore.memory.models.switch import Target, chosen_target, namespace_ids
from folklore.permissions import require_owner
from folklore.phases import Advance
from folklore.text.passages import passages

_BATCH = 16
_HITS = 5
_FEWEST_WORDS = 4
# A number of a vector takes two bytes, its row about so many.
_BYTES_OF_NUMBER = 2
_BYTES_OF_ROW = 100
_FIRST_SENTENCE = re.compile(r"(?:#+ )?([^\n]+?)(?:[.!?:]\s|\n)\s*")


@dataclass(slots=True)
class _Trial:
    """A model, and the vectors that it made of questions and texts."""

    target: Target
    questions: list[NDArray[np.float32]] = field(default_factory=list)
    texts: list[NDArray[np.float32]] = field(default_factory=list)
    seconds: float = 0.0

    async def embed(self, items: Sequence[tuple[str, str]]) -> None:
        embedder = self.target.embedder
        began = monotonic()
        self.texts += list(await embedder.embed([text for _, text in items]))
        self.seconds += monotonic() - began
        for question, _ in items:
            words = question.split()
            self.questions.append(
                await embedder.embed_question(words, [1.0] * len(words))
            )

    def measure(self) -> ModelMeasure:
        cosines = np.array(self.questions) @ np.array(self.texts).T
        of_own_text = np.diag(cosines)[:, None]
        ranks = (cosines > of_own_text).sum(axis=1)
        hit_rate = float(np.mean(ranks < _HITS))
        milliseconds = 1000 * self.seconds / len(self.texts)
        return ModelMeasure(self.target.model.label, hit_rate, milliseconds)


def known_item(text: str) -> tuple[str, str] | None:
    """Return the title or first sentence and the rest; of a text without them its second half and its first.

    Both have four words at least; a shorter text gives None.
    """
    first_sentence = _FIRST_SENTENCE.match(text)
    if first_sentence is not None:
        item = (first_sentence[1], text[first_sentence.end() :])
        if _fewest_words(item) >= _FEWEST_WORDS:
            return item

    words = text.split()
    middle = len(words) // 2
    item = (" ".join(words[middle:]), " ".join(words[:middle]))
    if _fewest_words(item) >= _FEWEST_WORDS:
        return item
    return None


def _fewest_words(item: tuple[str, str]) -> int:
    return min(len(part.split()) for part in item)


async def recommend_model(
    context: RequestContext, request: RecommendModelRequest
) -> Recommendation:
    """Measure a switch to MiniLM, or from it to the bundled model, over as many memories as both embed in that time.

    Raises Refused, NotFound, EmbedderUnavailable.
    """
    require_owner(context.caller, dry_run=True)
    memory = context.memory
    embeddings = context.memory.embeddings
    await memory.active_model.refresh()
    active = await memory.active_model.known()
    if active is None or memory.embedder is None:
        raise NotFound(
            "There is no active model to compare with.", hint="Store something first."
        )
    namespaces = await namespace_ids(memory)
    items = await _known_items(embeddings, namespaces, active.id, request.sample)
    other = await chosen_target(
        context, {"provider": "bundled" if active.provider == "minilm" else "minilm"}
    )
    try:
        trials = _Trial(Target(active, memory.embedder)), _Trial(other)
        done = await _embedded(
            trials, [item for _, item in items], request.seconds, context.report
        )
    finally:
        await other.embedder.close()
    measured = items[:done]
    embedded_characters = sum(len(rest) for _, (_, rest) in measured)
    seconds_of_character = trials[1].seconds / embedded_characters
    texts = [text for text, _ in measured]
    characters, vectors = _averages(texts, other.model.name)

    covered = (await embeddings.coverage(namespaces, other.model.id)).values()
    pending = sum(item.pending for item in covered)
    bytes_of_vector = other.model.dimensions * _BYTES_OF_NUMBER + _BYTES_OF_ROW
    return Recommendation(
        done,
        sum(item.memories for item in covered),
        trials[0].measure(),
        trials[1].measure(),
        pending * characters * seconds_of_character,
        round(pending * vectors * bytes_of_vector),
    )


async def _known_items(
    embeddings: Embeddings, namespaces: Sequence[UUID], model: UUID, most: int
) -> list[tuple[str, tuple[str, str]]]:
    """Return the texts of sampled memories, each with its known item. Raises NotFound without one."""
    each = ceil(most / max(len(namespaces), 1))
    sample = partial(embeddings.sample, one=model, other=model, most=each)
    rows = [
        row for namespace in namespaces for row in await sample(namespace=namespace)
    ]
    items = [
        (text, item)
        for _, text in rows[:most]
        if (item := known_item(text)) is not None
    ]
    if not items:
        raise NotFound(
            "There is no memory of eight words or more to measure with.",
            hint="Store some first.",
        )
    return items


async def _embedded(
    trials: Sequence[_Trial],
    items: Sequence[tuple[str, str]],
    seconds: float,
    report: Advance,
) -> int:
    """Embed items in batches with each model, and return how many there was time for."""
    done = 0
    began = monotonic()
    while not done or (done < len(items) and monotonic() - began <= seconds):
        for trial in trials:
            await trial.embed(items[done : done + _BATCH])
        done += len(items[done : done + _BATCH])
        report(done, len(items))
    return done


def _averages(texts: Sequence[str], model: str) -> tuple[float, float]:
    """Return the mean characters to embed, and vectors, of a text: of a long one each passage is embedded too."""
    characters = 0
    vectors = 0
    for text in texts:
        ranges = passages(text, *passage_rule(model, len(text)))
        characters += len(text) + sum(end - begin for begin, end in ranges)
        vectors += 1 + len(ranges)
    return characters / len(texts), vectors / len(texts)
