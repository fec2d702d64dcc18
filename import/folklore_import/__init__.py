"""Readers of other formats for `folklore import`: pages, rules, notes, conversations, commits, other memory systems."""
