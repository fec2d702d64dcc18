"""Texts recalled in this process: an assistant that stores one again, in quotation marks, confirms it."""

from collections.abc import Sequence
from dataclasses import replace

from cachetools import LRUCache

from folklore.model import Answer, Draft, Unreadable
from folklore.text import names
from folklore.text.clean import digest
from folklore.text.words import unquoted

# Texts, and their greatest length: a longer one would delay the answer.
_TEXTS = 2_000
_LONGEST = 4_000


class RecalledTexts:
    """Namespaces and digests of the latest recalled texts."""

    def __init__(self, texts: int = _TEXTS) -> None:
        self._latest: LRUCache[tuple[str, bytes], bool] = LRUCache(texts)

    def add(self, answer: Answer) -> None:
        """Add the texts of an answer."""
        for result in answer.memories:
            if len(result.memory.content) <= _LONGEST:
                self._latest[names.key(result.memory.namespace), digest(result.memory.content)] = True

    def unquoted(self, namespace: str, drafts: Sequence[Draft | Unreadable]) -> Sequence[Draft | Unreadable]:
        """Take quotation marks, a bullet or the like off each draft that wraps a recalled memory.

        A store then confirms that memory as a duplicate. Only signs around the whole text are taken off, never a word.
        """
        if not self._latest:
            return drafts
        key = names.key(namespace)
        return [draft if isinstance(draft, Unreadable) else self._unquoted(key, draft) for draft in drafts]

    def _unquoted(self, namespace: str, draft: Draft) -> Draft:
        if (namespace, digest(draft.content)) in self._latest:
            return draft
        texts = (text for text in unquoted(draft.content) if (namespace, digest(text)) in self._latest)
        text = next(texts, None)
        return draft if text is None else replace(draft, content=text)
