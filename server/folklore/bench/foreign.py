"""Questions that nothing stored can answer, made of questions that something could: pure.

A question of one conversation is asked of another, with its speakers' names replaced by that one's: same style, same
names, and no memory that holds the answer.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from folklore.bench.sets import Question, RetrievalSet

# A turn begins with who says it: "Caroline: Hey!".
_SPEAKER = re.compile(r"([^\W\d_][^:\n(){}\[\]]{0,29}):\s")
# Who says less than this share of the turns is somebody quoted, or a heading.
_SHARE = 0.2


@dataclass(frozen=True, slots=True)
class Foreign:
    """The questions to each other's conversations; or why there are none."""

    questions: list[Question]
    speakers: Mapping[str, list[str]]
    why_not: str | None = None


def speakers_of(contents: Sequence[str]) -> list[str]:
    """Who speaks in a conversation: the names before a colon that at least a fifth of its turns begin with each."""
    found = Counter(match.group(1) for text in contents if (match := _SPEAKER.match(text)))
    return [name for name, count in found.most_common() if count >= _SHARE * len(contents)]


def renamed(guests: Sequence[str], hosts: Sequence[str]) -> dict[str, str]:
    """Which host each guest becomes: one of the same name stays, the others take the others' names in turn."""
    free = [name for name in hosts if name not in guests] or list(hosts)
    strangers = [name for name in guests if name not in hosts]
    return {name: name for name in guests if name in hosts} | {
        name: free[place % len(free)] for place, name in enumerate(strangers)
    }


def with_names(text: str, names: Mapping[str, str]) -> str:
    """The text with whole names replaced, all at once, whatever their case."""
    if not names:
        return text
    lowered = {name.casefold(): host for name, host in names.items()}
    choices = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    return re.sub(
        rf"(?<!\w)(?:{choices})(?!\w)",
        lambda match: lowered.get(match.group().casefold(), match.group()),
        text,
        flags=re.IGNORECASE,
    )


def foreign_questions(given: RetrievalSet, questions: Sequence[Question]) -> Foreign:
    """Each question to one conversation, asked of the next one of the set (of the first, after the last)."""
    speakers = {
        name: speakers_of([str(memory["content"]) for memory in memories]) for name, memories in given.memories.items()
    }
    talking = [name for name, found in speakers.items() if found]
    if len(given.memories) < 2:
        return Foreign([], speakers, "the set has one namespace: there is no other conversation to ask")
    if len(talking) < 2:
        return Foreign([], speakers, "the memories name no speakers (Name: …), so these are not conversations")
    following = dict(zip(talking, [*talking[1:], talking[0]], strict=True))
    asked = []
    for question in questions:
        own = question.namespaces[0] if len(question.namespaces) == 1 else None
        if own in following and question.evidence:
            host = following[own]
            query = with_names(question.query, renamed(speakers[own], speakers[host]))
            asked.append(replace(question, query=query, namespaces=(host,)))
    if not asked:
        return Foreign([], speakers, "no question is asked of one conversation alone")
    return Foreign(asked, speakers)
