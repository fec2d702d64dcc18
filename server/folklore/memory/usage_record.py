"""What answers leave behind in this process: the usage log, and which texts were just recalled."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from folklore.memory.call_metrics import Meter
from folklore.model import Answer, Caller, Draft

if TYPE_CHECKING:
    from folklore.memory.usage_log import UsageLog

_REMEMBERED = 2_000
# A longer text is not looked at: an answer should not wait while it is read through.
_LONGEST = 4_000


class Traces:
    """Noted after each answer, asked before each store.

    `log` makes the usage log when the first answer goes out; None where nothing may be written. `meter` counts, if
    whoever runs this process has put one there that does.
    """

    def __init__(self, log: Callable[[], UsageLog] | None = None) -> None:
        self._make_log = log
        self.log: UsageLog | None = None
        self.meter = Meter()
        # (namespace, digest of the text) of what was recalled here, the latest last.
        self._recalled: OrderedDict[tuple[str, bytes], None] = OrderedDict()

    def answered(self, answer: Answer, query: str, *, caller: Caller, now: datetime) -> None:
        """An answer goes out."""
        from folklore.text import names
        from folklore.text.clean import digest

        self.meter.answered(answer)
        for result in answer.memories:
            if len(result.memory.content) > _LONGEST:
                continue
            key = (names.key(result.memory.namespace), digest(result.memory.content))
            self._recalled[key] = None
            self._recalled.move_to_end(key)
        while len(self._recalled) > _REMEMBERED:
            self._recalled.popitem(last=False)
        if self._make_log is not None:
            self.log = self.log or self._make_log()
            self.log.note(answer, query, caller=caller, now=now)

    def as_recalled(self, namespace: str, drafts: Sequence[Draft]) -> list[Draft]:
        """The drafts, where one is a memory recalled here with quotation marks, a bullet or the like around it as that
        memory's own text, which store then confirms as a duplicate.

        Nothing is lost by it: only signs around a whole memory are taken off, never a word, and if that memory is gone
        by now, its text is stored.
        """
        if not self._recalled:
            return list(drafts)
        from folklore.text import names

        return [self._plain(names.key(namespace.strip()), draft) for draft in drafts]

    def _plain(self, namespace: str, draft: Draft) -> Draft:
        from folklore.text.clean import clean, digest
        from folklore.text.words import unquoted

        if (namespace, digest(draft.content)) in self._recalled:
            return draft
        for inner in unquoted(clean(draft.content).text):
            if (namespace, digest(inner)) in self._recalled:
                return replace(draft, content=inner)
        return draft

    async def close(self) -> None:
        """Write what is left to write."""
        if self.log is not None:
            await self.log.close()
