"""Numbers with their nouns."""


def amount(number: int, noun: str) -> str:
    """Return a number with its noun: 1 memory, 2 memories, 2 days."""
    if noun[-1] == "y" and noun[-2] not in "aeiou":
        plural = f"{noun[:-1]}ies"
    else:
        plural = f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"
