"""Lines of JSON-RPC: however the bytes are cut, each line is whole or refused by its id."""

import json

import pytest

from folklore.text.lines import LineReader, LongLine

LONG = "z" * 9_000


def read(data: bytes, size: int, limit: int = 8_192) -> list[bytes | LongLine]:
    reader = LineReader(limit)
    lines = [
        line
        for start in range(0, len(data), size)
        for line in reader.feed(data[start : start + size])
    ]
    return [*lines, *reader.end()]


@pytest.mark.parametrize("size", [1, 7, 4_096, 100_000])
def test_lines_are_the_same_however_they_arrive(size: int) -> None:
    most = b"y" * 8_192
    data = b"one\n\n  \r\ntwo\r\n" + most + b"\n" + most + b"y\nlast"

    assert read(data, size) == [b"one", b"two\r", most, LongLine(None), b"last"]


@pytest.mark.parametrize("size", [1, 4_096, 100_000])
@pytest.mark.parametrize(
    ("message", "id_"),
    [
        ({"jsonrpc": "2.0", "id": 5, "method": "m", "params": LONG}, 5), ({"id": "a\"b\\", "params": LONG}, 'a"b\\'),
        ({"method": "m", "params": {"x": LONG}, "jsonrpc": "2.0", "id": -7}, -7),
        ({"params": [LONG], "id": "end", "method": "m", "jsonrpc": "2.0"}, "end"),
        ({"method": "m", "params": {"x": LONG, "id": 6}}, None), ({"params": {"id": 6, "x": LONG}}, None),
        ({"params": LONG, "id": {"id": 6}}, None), ({"params": LONG, "id": True}, None),
        ({"params": f'"id": 6, {LONG}, "id": 6'}, None), ([{"id": 6, "params": LONG}, {"id": 6}], None),
    ],
)  # fmt: skip
def test_the_id_of_a_long_request_is_found_at_its_top_level(
    message: object, id_: object, size: int
) -> None:
    for line in (json.dumps(message), json.dumps(message, separators=(",", ":"))):
        assert read(line.encode() + b"\nnext\n", size) == [LongLine(id_), b"next"]  # type: ignore[arg-type]
