"""Sentences of developers without secrets: hashes, UUIDs, base64, placeholders, settings, talk of passwords."""

from pathlib import Path

SENTENCES = tuple(
    Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines()
)
