"""Every function of text/ takes a time that grows no faster than its text, whatever the text is."""

import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from folklore import text
from folklore.errors import InvalidInput
from folklore.text import (
    arguments,
    clean,
    cues,
    difference,
    gist,
    languages,
    lines,
    names,
    passages,
    paths,
    tags,
    tokens,
    words,
)
from folklore.text.dates import byline, date_terms, expressions, translation, zones
from folklore.text.entities import finder, identifiers, proper_nouns
from folklore.text.hooks import (
    assertions,
    edits,
    failures,
    injected,
    marks,
    prompts,
    shell,
    tool_calls,
)
from folklore.text.query import highlight, parser, question, snippet, syntax, tsquery
from folklore.text.secrets import context, finder as secrets, key_formats, values
from tests.linear_time import assert_linear_time

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
ASKED = question.QuestionWords.of(["a", "Word", "bc", "中"])
# Repeated to texts; each may hold what some function looks for, or the beginning of it.
UNITS = [
    "word ", "a", "a ", "A", "É\u0301", "\u0301\u0316", "a\u0301", "ab. ", "\n", "a\n", " ", "\t", "\r", "+-",
    "red fox ", "<private>",
    "<", "<folk", "</", injected.OPENING, injected.CLOSING, "\u200d", "👩\u200d", "\u200b", "\x00",
    "\x1b[", "\x1b]8;;", "`", "```", "```\n", '"', "'", "(", "((a OR b) ", "f(", "[", "A'", "A-B", "a.", "a_", "a/b ",
    "//", "https://", "@", "://", "a:b@", "A van de ", "x.py ", "中", "中。", "ไทย", "? ", "...", "1", "1.", "12:30 ",
    "2024-01-01 ", "last week ", "we prefer ", "prefers x ", "root cause ", "%3A%2F%2F", "> ", ">\n", "* ", "# ", "ß",
    "İ", "\\ud800", "*", "-a ", "a AND ", "NOT ", "tag:", "a* ", "password ", "password: ", "token is ",
    "-----BEGIN PRIVATE KEY-----", "sk-", "eyJ.", "--token ", "curl -u ", "x-key", "_test_", "a" * 63 + "/", "mysql ",
    "login x ", " is the ", "password=aB", "pw ", "seed phrase ", "kind: secret\ndata:\n  a: b\n", '"auth":', "$6$a",
    "eyJ-", "ghp_\n", "le \n", ":1", "aB ", "0" * 199 + " ", "a." * 99 + "! ", "A-" * 99 + "! ",
]  # fmt: skip
FUNCTIONS: Mapping[str, Callable[[str], object]] = {
    "clean.clean": clean.clean, "clean.cleaned": lambda it: clean.cleaned({it: [it]}), "clean.digest": clean.digest,
    "arguments.entries_of": arguments.entries_of, "arguments.is_nothing": arguments.is_nothing,
    "arguments.is_null_word": arguments.is_null_word, "names.new": names.new, "names.former": names.former,
    "names.is_of_folder": names.is_of_folder,
    "names.of_folder": names.of_folder, "names.of_project": names.of_project,
    "tags.refuse_null_words": lambda it: tags.refuse_null_words([it], "tags"),
    "clean.former_digest": clean.former_digest, "clean.trimmed": clean.trimmed,
    "clean.nfc": clean.nfc, "clean.normal_form": lambda it: clean.normal_form("NFKD", it),
    "clean.replace_lone_surrogates": lambda it: clean.replace_lone_surrogates(it.encode()),
    "dates.date_terms.date_terms": date_terms.date_terms,
    "dates.date_terms.tokens_with_dates": lambda it: date_terms.tokens_with_dates(it.split()),
    "dates.expressions.parse_time": lambda it: expressions.parse_time(it, now=NOON, zone=UTC),
    "dates.translation.translations": lambda it: list(translation.translations(it[:200])),
    "dates.zones.zone_named": lambda it: zones.zone_named(it, "zone"),
    "difference.changed_lines": lambda it: (
        list(difference.changed_lines(it, it[1:] + "x")), list(difference.changed_lines(it, it[::-1]))
    ),
    "difference.opcodes": lambda it: difference.opcodes(it.split(), it[1:].split()[::-1]),
    "hooks.edits.edit_of": lambda it: (edits.edit_of("", "", it), edits.edit_of("", "", f"*** Update File: a\n+{it}")),
    "hooks.edits.Edit": lambda it: edits.Edit(it, it).question, "entities.finder.find_entities": finder.find_entities,
    "entities.identifiers.find_identifiers": lambda it: list(identifiers.find_identifiers(it)),
    "entities.proper_nouns.find_proper_nouns": lambda it: proper_nouns.find_proper_nouns(it, set()),
    "gist.gist": lambda it: gist.gist([it, it], ["a"]), "gist.leading_sentence": gist.leading_sentence,
    "gist.shared_words": lambda it: gist.shared_words([it, it]),
    "query.highlight.highlight_pattern": highlight.highlight_pattern,
    "query.highlight.highlighted": lambda it: highlight.highlighted(it, ASKED.pattern(0)),
    "query.highlight.words_of": highlight.words_of, "hooks.injected.block": lambda it: injected.block(it, [it]),
    "hooks.failures.looks_failed": failures.looks_failed,
    "hooks.failures.without_exit_code": failures.without_exit_code,
    "hooks.failures.failure_question": lambda it: failures.failure_question(it, it),
    "hooks.shell.file_shown": lambda it: (shell.file_shown(it), shell.file_shown(f"cat {it}")),
    "hooks.tool_calls.ToolCall": lambda it: (
        tool_calls.ToolCall("PostToolUse", it, {"file_path": it, "content": it}, it).moment,
        tool_calls.ToolCall("PostToolUse", it, {"command": it}, {"stdout": it}).moment,
    ),
    "hooks.marks.encoded": marks.encoded, "hooks.injected.without_blocks": injected.without_blocks,
    "hooks.injected.quoting_of": lambda it: injected.quoting_of(it, it),
    "hooks.marks.neutralised": marks.neutralised, "hooks.marks.mark_indexes": marks.mark_indexes,
    "dates.byline.byline": lambda it: byline.byline(it, it, None, UTC),
    "cues.as_text": lambda it: cues.as_text([it, it]), "cues.distinct": lambda it: cues.distinct([it, it[1:]]),
    "cues.phrase": cues.phrase, "cues.fits": lambda it: cues.fits(it, it),
    "cues.brings_words": lambda it: cues.brings_words(it, [it]),
    "cues.with_learned": lambda it: cues.with_learned((it,), (it,), it[1:], (0,)),
    "cues.united": lambda it: cues.united([it, it[1:]], it, 2),
    "hooks.injected.Quoting": lambda it: injected.Quoting.of(it).quotes(it[:-1]), "languages.detect": languages.detect,
    "languages.language": languages.language,
    "lines.LineReader": lambda it: list(lines.LineReader(1_000).feed(it.encode())),
    "names.from_directory": names.from_directory, "names.from_remote": names.from_remote, "names.key": names.key,
    "names.nearest": lambda it: names.nearest(it, [it, "payments"]), "names.normalise": names.normalise,
    "names.prefix_of": names.prefix_of, "names.private": names.private,
    "passages.passages": lambda it: passages.passages(it, 1_200, 2_000), "paths.is_inside": paths.is_inside,
    "paths.plain_path": paths.plain_path, "hooks.prompts.question_in": prompts.question_in,
    "hooks.prompts.is_remark": prompts.is_remark, "hooks.prompts.without_private": prompts.without_private,
    "query.parser.parse": parser.parse, "query.syntax.tokenise": syntax.tokenise,
    "query.tsquery.function_word_text": tsquery.function_word_text, "query.tsquery.quoted": tsquery.quoted,
    "query.question.QuestionWords": lambda it: question.QuestionWords.of(it.split()).held_by([it]),
    "query.question.joined_names": question.joined_names, "query.question.plain": question.plain,
    "query.question.with_parts": question.with_parts,
    "query.question.without_contractions": question.without_contractions,
    "secrets.context.find_by_context": lambda it: list(context.find_by_context(it, it.lower())),
    "secrets.finder.find": secrets.find, "secrets.finder.redact": secrets.redact,
    "secrets.key_formats.find_keys": lambda it: list(key_formats.find_keys(it, it.lower())),
    "secrets.values.decoded": values.decoded, "secrets.values.is_generated": values.is_generated,
    "secrets.values.is_mixed": values.is_mixed,
    "secrets.values.is_password": lambda it: values.is_password(it, stated=True),
    "secrets.values.is_placeholder": values.is_placeholder,
    "secrets.values.is_placeholder_key": values.is_placeholder_key,
    "secrets.values.is_sample_token": values.is_sample_token,
    "secrets.values.is_token": lambda it: values.is_token(it, stated=True, qualified=True),
    "secrets.values.kinds_of_characters": values.kinds_of_characters,
    "query.snippet.whole_sentences": lambda it: snippet.whole_sentences(it, ASKED, 240),
    "query.snippet.line": lambda it: snippet.line(it, ASKED, 400),
    "query.snippet.snippet": lambda it: snippet.snippet(it, ASKED, 400),
    "hooks.assertions.assertions": lambda it: list(assertions.assertions(it)),
    "tags.kind_of": lambda it: tags.kind_of(it, "kind"), "tags.normalise": lambda it: tags.normalise([it]),
    "tags.spell": tags.spell, "tokens.estimate": tokens.estimate, "tokens.fit": lambda it: tokens.fit(it, len(it) // 8),
    "tokens.last_space": lambda it: tokens.last_space(it, 0, len(it) - 1),
    "words.differing_words": lambda it: (words.differing_words(it, it[1:]), words.differing_words(it, it[::-1])),
    "words.is_question": words.is_question, "words.separated": words.separated,
    "words.unquoted": lambda it: list(words.unquoted(it)), "words.words": lambda it: list(words.words(it)),
}  # fmt: skip


def reading() -> set[str]:
    """Return the public functions of text/ whose first argument is a text or several."""
    root = Path(text.__path__[0])
    found = set()
    for path in root.rglob("*.py"):
        name = ".".join(path.relative_to(root).with_suffix("").parts)
        module: Any = (
            import_module(f"folklore.text.{name}") if path.stem != "__init__" else text
        )
        for function in (
            item for item in vars(module).values() if inspect.isfunction(item)
        ):
            first = next(iter(inspect.signature(function).parameters.values()), None)
            if (
                function.__module__ == module.__name__
                and first is not None
                and "str" in str(first.annotation)
            ):
                found.add(f"{name}.{function.__name__}")
    return {name for name in found if not name.rpartition(".")[2].startswith("_")}


def test_every_function_that_reads_text_is_measured() -> None:
    # These read mappings of words, the name of a section, lexemes of the database, and parts of a time expression,
    # which has at most MAX_LENGTH characters.
    others = {
        "dates.period_expressions.clock_time_of",
        "dates.period_expressions.length_of",
        "dates.period_expressions.period_of",
        "dates.translation.months_of_languages",
        "gist.keywords",
        "hooks.assertions.alternatives",
        "query.tsquery.without_last_characters",
    }
    assert reading() - FUNCTIONS.keys() == others


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_takes_linear_time(name: str) -> None:
    def called(given: str) -> None:
        with suppress(InvalidInput, secrets.SearchEnded):
            FUNCTIONS[name](given)

    for unit in UNITS:
        assert_linear_time(called, unit)
        if len(unit) == 1:
            assert_linear_time(called, unit, end=f"x{injected.OPENING}")
