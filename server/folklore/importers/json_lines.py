"""Files of Folklore's own format, JSON Lines, and JSON that has the same records in another layout."""

import json
import re
from typing import Any, BinaryIO

from folklore.contract.lines import Lines, SourceLine
from folklore.errors import InvalidInput
from folklore.importers.encodings import unpacked
from folklore.importers.json_values import (
    is_one_document,
    raw_lines,
    records_of_document,
    values_of_line,
)

# Two objects on a line, or the parts of one.
_NEXT_OBJECT = re.compile(rb"\}\s*(?:,\s*)?\{")


def json_lines(source: BinaryIO) -> Lines:
    """Yield the lines of a file with their numbers, of a line that is too long only the beginning.

    Several objects on a line, the objects of a list, and those in a list of an object are lines too.
    """
    try:
        is_document, whole = is_one_document(unpacked(source))
    except InvalidInput as error:
        yield SourceLine(0, error, "FILE")
        return
    if is_document:
        for number, value, place in records_of_document(whole):
            raw = value if isinstance(value, InvalidInput) else _encoded(value)
            yield SourceLine(number, raw, place)
        return
    for number, line in raw_lines(whole):
        values = values_of_line(line) if _NEXT_OBJECT.search(line) else []
        are_objects = all(isinstance(value, dict) for value in values)
        if len(values) > 1 and are_objects:
            for value in values:
                yield SourceLine(number, _encoded(value))
        else:
            yield SourceLine(number, line)


def _encoded(value: Any) -> bytes:
    return json.dumps(value).encode()
