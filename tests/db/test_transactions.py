"""The page about transactions names every statement that locks."""

import re

from tests import ROOT

STORES = ROOT / "server" / "folklore" / "db" / "stores"
LOCKS = re.compile(
    r"\bfor (?:update|share|no key update)\b|advisory|folklore_(?:lock|ensure|record_usage)\("
)


def locking_statements() -> set[str]:
    found = set()
    for path in STORES.rglob("*.sql"):
        for section in re.split(r"(?m)^-- name: ", path.read_text(encoding="utf-8"))[
            1:
        ]:
            code = re.sub(r"--[^\n]*", "", section)
            if LOCKS.search(code):
                name = section.split(maxsplit=1)[0].rstrip(".")
                found.add(f"{path.stem}/{name}")
    return found


def test_the_page_names_every_statement_that_locks_and_no_other() -> None:
    page = (ROOT / "docs" / "explanation" / "transactions.md").read_text("utf-8")
    # It locks a row by writing to it.
    by_writing = {"postings/begin"}

    named = set(re.findall(r"`(\w+/\w+)`", page)) - by_writing

    assert len(named) > 10
    assert named == locking_statements()
