"""Numbers with their nouns."""


def amount(number: int, noun: str) -> str:
    """Return a number with its noun: 1 memory, 2 memories, 2 days."""
    if number == 1:
        return f"1 {noun}"
    if noun[-1] == "y" and noun[-2] not in "aeiou":
        return f"{number:,} {noun[:-1]}ies"
    return f"{number:,} {noun}s"
