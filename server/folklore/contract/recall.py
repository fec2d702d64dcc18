"""Recall: questions, the ranking, and answers with their memories."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NotRequired, TypedDict, TypeVar, cast
from uuid import UUID

from pydantic import Field

from folklore.contract.argument_types import NamespaceNames, UpTo100, UseFlag, Words
from folklore.contract.compact import (
    NOT_LISTED,
    Format,
    JsonDict,
    fields_of,
    plain,
    without_unset,
)
from folklore.contract.filters import FiltersRequest
from folklore.contract.memories import (
    GetJson,
    MemoryJson,
    changed_json,
    record_json,
    stale_json,
)
from folklore.contract.requests import Part, Request, Returns
from folklore.model import (
    FIELDS,
    Answer,
    Degraded,
    Memory,
    Number,
    Recalled,
    Sort,
    Whole,
)
from folklore.text.tokens import CHARACTERS_PER_TOKEN

Reflections = Literal["include", "exclude", "only", "boost"]
Expansion = Literal["relations", "entities"]


class RankingRequest(Part):
    """A preset of the ranking, and the numbers that differ from it."""

    preset: Annotated[
        str,
        Field(description="or keyword, semantic, roaming, rrf, a configured one"),
    ] = "balanced"
    weights: dict[str, Number] = Field(
        {}, description="of dense, keyword, exact, neighbours, relations or a signal"
    )
    min_score: Annotated[
        Number | None,
        Field(description="least confidence, 0 to 1"),
    ] = None
    mmr_lambda: Number | None = None
    reflections: Reflections = "include"
    expand: tuple[Expansion, ...] = ()
    hops: Annotated[int, Field(ge=1, le=3)] = 1
    least_strength: Number = 0.0
    embedding: tuple[Number, ...] | None = None
    embedding_model: str | None = None


class RecallRequest(Request, Returns[Answer]):
    """Find memories that answer a question, or several: `query` or `queries`.

    With `client_session`, which the tool memory_recall gives, a question may become a cue of a memory that the session
    uses or stores after it.
    """

    query: str | None = Field(
        None, description="A question in plain words; * lists what is trending"
    )
    queries: Words = Field(
        (), max_length=8, description="Instead of query: up to 8 questions at once"
    )
    namespaces: NamespaceNames = Field(
        (),
        description='default: the project\'s, others only where clearly better; ["*"]: all',
    )
    limit: UpTo100 = 10
    filters: FiltersRequest = Field(default_factory=FiltersRequest)
    ranking: RankingRequest = Field(default_factory=RankingRequest)
    sort: Sort = "score"
    max_tokens: Whole | None = None
    explain: bool = False
    cursor: str | None = None
    counted: UseFlag = True
    client_session: str | None = None

    @property
    def questions(self) -> Words:
        """The questions."""
        return self.queries or (self.query or "",)


class SearchRequest(Request, Returns[Answer]):
    """Find memories by exact words."""

    query: str
    namespaces: NamespaceNames = ()
    limit: UpTo100 = 10
    filters: FiltersRequest = Field(default_factory=FiltersRequest)
    max_tokens: Whole | None = None
    cursor: str | None = None
    counted: UseFlag = True

    @property
    def questions(self) -> Words:
        """The question."""
        return (self.query,)


# Tokens of an answer by its format, and the most tokens of any, if the caller states no number.
_TOKENS = {"concise": 2_000, "detailed": 10_000}
_MOST_TOKENS = 20_000


def token_budget(form: Format, max_tokens: int | None) -> int | None:
    """Return the token budget of an answer: as stated, or else 2,000 if it is concise and 10,000 if detailed."""
    return _TOKENS.get(form) if max_tokens is None else max_tokens


_SHORTENED = (
    "The last memories are ids alone, since all would be too long: "
    "read them by memory_get, a few at once."
)
# Searched namespaces that are named.
_NAME_LIMIT = 12


class AnswerJson(TypedDict):
    """An answer: memories, the best first or in the order asked for."""

    memories: list[MemoryJson]
    searched: list[str]
    degraded: NotRequired[list[Any]]
    truncated: NotRequired[bool]
    cursor: NotRequired[str]
    note: NotRequired[str]
    explain: NotRequired[Annotated[JsonDict, NOT_LISTED]]


# Results whose memories can be reduced to their ids.
WithMemories = TypeVar("WithMemories", AnswerJson, GetJson)


def answer_json(source: Answer, form: Format) -> AnswerJson:
    """Serialize an answer; empty parts are left out."""
    memories = [recalled_json(item, form) for item in source.memories]
    value: AnswerJson = {
        "memories": cast("list[MemoryJson]", memories),
        "searched": _searched(source.searched),
    }
    if source.degraded:
        value["degraded"] = [
            fields_of(item, "branch reason") for item in source.degraded
        ]
    if source.truncated:
        value["truncated"] = True
    if source.cursor is not None:
        value["cursor"] = source.cursor
    if source.note is not None:
        value["note"] = source.note
    if source.explain is not None:
        value["explain"] = dict(source.explain)
    return value


def fitted_json(value: WithMemories, max_tokens: int | None) -> WithMemories:
    """Reduce the last memories of a result to their ids, until it is within a budget; the first one stays whole.

    The default is below what clients cut off. Other characters than ASCII count as a token each.
    """
    remaining = max_tokens or _MOST_TOKENS
    memories: list[MemoryJson] = []
    for memory in value["memories"]:
        remaining -= _tokens(json.dumps(memory, ensure_ascii=False))
        if remaining >= 0 or not memories:
            memories.append(memory)
        else:
            memories.append({"id": memory["id"]})
    if len(memories) < 2 or remaining >= 0:
        return value
    shortened = value.copy()
    shortened["memories"] = memories
    shortened["truncated"] = True
    shortened["note"] = _SHORTENED
    return shortened


def _tokens(text: str) -> int:
    ascii_characters = len(text.encode("ascii", "ignore"))
    others = len(text) - ascii_characters
    return others + -(-ascii_characters // CHARACTERS_PER_TOKEN)


def _searched(names: Sequence[str]) -> list[str]:
    """Return the names of the namespaces, the last of very many as their number."""
    if len(names) <= _NAME_LIMIT:
        return list(names)
    return [*names[: _NAME_LIMIT - 1], f"and {len(names) - _NAME_LIMIT + 1:,} more"]


def recalled_json(result: Recalled, form: Format) -> JsonDict:
    """Serialize one result: `ids` is its id and score, `concise` what a reader needs, `detailed` everything."""
    if form == "ids":
        value: JsonDict = {"id": str(result.memory.id)}
    elif form == "concise":
        value = _concise(result.memory)
    else:
        value = record_json(result.memory)
    memory = result.memory
    superseded_at = None
    if memory.superseded_by is None:  # or the memory that superseded it was erased
        superseded_at = plain(memory.superseded_at)
    passage = None
    if result.passage and (form == "detailed" or result.explain):
        passage = list(result.passage)
    return value | without_unset(
        **fields_of(result, "score match"),
        superseded_by=plain(memory.superseded_by),
        superseded_at=superseded_at,
        **fields_of(result, "queries expanded elsewhere"),
        passage=passage,
        variants=_variants(result),
        replaces=[fields_of(item, "id when") for item in result.replaces],
        contradicts=list(map(str, result.contradicts)),
        stale=stale_json(result.stale),
        explain=None if result.explain is None else dict(result.explain),
    )


# Near-duplicates that are shown by themselves.
_VARIANTS = 5


def _variants(result: Recalled) -> list[JsonDict]:
    """Serialize the newest variants, the namespace only where it is another; the last entry counts the rest."""
    rows = []
    for variant in result.variants[:_VARIANTS]:
        namespace = None
        if variant.namespace != result.memory.namespace:
            namespace = variant.namespace
        optional = without_unset(
            changed_by=variant.changed_by,
            namespace=namespace,
            differs=variant.differs or None,
        )
        rows.append(fields_of(variant, "id when author") | optional)
    more = len(result.variants) - len(rows)
    if more:
        rows.append({"more": more})
    return rows


def _concise(memory: Memory) -> JsonDict:
    value = fields_of(memory, "id content namespace")
    for name, declared in FIELDS.items():
        field_value = getattr(memory, name)
        if declared.concise and field_value != declared.default:
            value[name] = plain(field_value)
    return value | fields_of(memory, "author when") | changed_json(memory)


# Where a candidate ended: in the answer, on the next page, represented by another one, without a rank among the
# results, below the confidence that is shown, left out as a reflection too many, or never read for its low rank.
Stage = Literal[
    "answer",
    "next page",
    "grouped",
    "below the limit",
    "low confidence",
    "reflection",
    "not read",
]


@dataclass(frozen=True, slots=True)
class BranchHit:
    """Memory in the list of a branch: its score, and the cosine or the weight of the words that it holds."""

    id: UUID
    rank: int
    score: float
    raw: float


@dataclass(frozen=True, slots=True)
class BranchList:
    """The list of a branch, best first, the path of its search, and its milliseconds."""

    branch: str
    path: str
    milliseconds: float
    hits: tuple[BranchHit, ...]


@dataclass(frozen=True, slots=True)
class ExplainedCandidate:
    """Candidate, its rank in the answer, and where it ended; `represented_by` is the newest of its near-duplicates.

    The `shares` add up to the relevance: each feature times its weight.
    """

    memory: Memory
    stage: Stage
    rank: int | None = None
    represented_by: UUID | None = None
    relevance: float = 0.0
    shares: Mapping[str, float] = field(default_factory=dict)
    redundancy: float | None = None
    confidence: float | None = None
    score: float | None = None


@dataclass(frozen=True, slots=True)
class ExplainedWord:
    """Word of the question: in how many memories it is, and its weight."""

    word: str
    documents: int
    weight: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """Steps to the answer of a question in its namespaces, taken together; `ranking` has the numbers of the ranking."""

    query: str
    searched: tuple[str, ...]
    branches: tuple[BranchList, ...]
    candidates: tuple[ExplainedCandidate, ...]
    words: tuple[ExplainedWord, ...]
    ranking: Mapping[str, float]
    degraded: tuple[Degraded, ...] = ()


class ExplainRequest(Request, Returns[Explanation]):
    """Explain the recall of a question: the lists of both branches, all candidates, and where each one ended."""

    query: str
    namespaces: NamespaceNames = ()
    limit: UpTo100 = 10
    filters: FiltersRequest = Field(default_factory=FiltersRequest)
    ranking: RankingRequest = Field(default_factory=RankingRequest)


@dataclass(frozen=True, slots=True)
class Preset:
    """A preset of the ranking with its numbers, and what the setting `ranking.presets` holds for it."""

    name: str
    numbers: Mapping[str, float]
    setting: Mapping[str, Any]


class ListPresetsRequest(Request, Returns[tuple[Preset, ...]]):
    """List the presets of the ranking: built-in ones, and those of the settings."""
