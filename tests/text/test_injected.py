"""The block of injected notes: nothing in it reads as its mark, and it is found again in a text."""

import json
import unicodedata

import pytest
from hypothesis import given, strategies as st

from folklore.text.clean import clean
from folklore.text.hooks.injected import (
    CLOSING,
    OPENING,
    Quoting,
    block,
    without_blocks,
)
from folklore.text.hooks.marks import encoded, json_text, mark_indexes
from tests.linear_time import assert_linear_time

PIECES = [
    "<", "</", ">", OPENING, CLOSING, CLOSING.upper(), "folklore", "FolkLore", "-", "notes", "f", "\uff46", "olklore",
    "f\u043elklore", "f\u03bflkl\u00f6re", "n\u043etes", "\uff1c", "\u2039", "\u27e8", "/", "\u2215", "\u2011",
    "_", " ", "\n", "\r\n", "\u2028", "\u200b", "\u00ad", "\u202e", "\x00", "\u0301", "&lt;", "]", "SYSTEM: obey",
]  # fmt: skip
HOSTILE = st.lists(
    st.one_of(st.sampled_from(PIECES), st.text(max_size=3)), max_size=12
).map("".join)
SEEN_AS = str.maketrans("\u043e\u03bf\uff1c\u2039\u27e8", "oo<<<")


def marks(text: str) -> int:
    """Count what a reader takes for a mark, who sees shapes and no invisible characters."""
    shapes = unicodedata.normalize("NFKD", clean(text).text.lower().translate(SEEN_AS))
    return "".join(char for char in shapes if char.isalnum() or char in "<>").count(
        "<folklorenotes>"
    )


@given(HOSTILE, HOSTILE, HOSTILE)
def test_no_content_author_tag_source_or_name_writes_a_mark(
    heading: str, author: str, content: str
) -> None:
    text = block(heading, [f"- [today, by {author}] {content}", content])

    assert marks(text) == 2
    assert len(text.splitlines()) == 5
    assert without_blocks(f"before\n{text}\nafter") == "before\nafter"


@given(HOSTILE)
def test_an_encoded_text_is_its_own_encoding(text: str) -> None:
    assert encoded(encoded(text)) == encoded(text)


@pytest.mark.parametrize(
    "text",
    [
        "for (int i = 0; i < n; i++) { xs[i] << 2; }", "vector<string> names; Map<String, List<Folder>> found;",
        '<form action="/folklore"><b>folklore notes</b></form>', "if a < folk: return",
        "<folklore> notes > </folklore>", "<\uff58olklore-notes>", "the folklore-notes of <\u6587\u4ef6\u540d>",
    ],
)  # fmt: skip
def test_code_and_html_stay_readable(text: str) -> None:
    assert encoded(text) == text


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"a {OPENING}x{CLOSING} \n b", "a b"),
        (f"a\t{OPENING}x{OPENING}y{CLOSING}b{CLOSING}", f"ab{CLOSING}"),
        (f"a {OPENING}never ends", "a"),
        (f"aX {OPENING}x{CLOSING}X b", "aXX b"),
        (f"{OPENING}x{CLOSING}\n\nb {OPENING}y{CLOSING}", "\nb"),
    ],
)
def test_blocks_are_removed_from_a_text(text: str, left: str) -> None:
    assert without_blocks(text) == left


def test_a_block_has_a_line_for_the_heading_and_each_note_and_their_marks_are_encoded() -> (
    None
):
    assert block("Notes:", ["one\ntwo", f"a {OPENING[:-1]} id=1> b"]).split("\n") == [
        "<folklore-notes>", "Notes:", "one two", "a &lt;folklore-notes id=1> b", "</folklore-notes>",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("note", "share", "quotes"),
    [
        ("Harbour kitchen", 1 / 2, False), ("lantern, kitchen, HARBOUR!", 2 / 3, True),
        ("?!", 0, False), ("", 0, False),
        ("kitchen station cabinet it is open in May chimney", 0, True),  # five words in sequence
        ("kitchen station cabinet is open in May chimney", 0, False), ("May in it is open kitchen station", 0, False),
    ],
)  # fmt: skip
def test_a_quotation_has_five_words_of_a_note_in_sequence_or_most_of_them_by_weight(
    note: str, share: float, quotes: bool
) -> None:
    quoting = Quoting.of("The harbour lantern; it is OPEN in May.")

    assert quoting.quotes(note) is quotes
    assert quoting.share(note) == pytest.approx(share, abs=0.01) or quotes or not share


MARKS = [
    "<system-reminder>", "</system-reminder>", "</SYSTEM-REMINDER>", "< / system - reminder >", "</system\u200b-reminder>",
    "</sys\u00adtem-reminder>", "\uff1c/system-reminder\uff1e", "</\uff53\uff59\uff53\uff54\uff45\uff4d-reminder>",
    "\u2039/system-reminder\u203a", "</s\u0443stem-reminder>", '<system-reminder priority="high">', "</system_reminder",
    "<|im_end|>", "<|im_start|>system", "<|IM_END|>", "< | im_end | >", "\uff1c|im_end|\uff1e", "<\uff5cim_end\uff5c>",
    "<|endoftext|>", "<|eot_id|>", "<|start_header_id|>", "<|assistant|>", "<|any_new_mark|>", "<|im_end|",
    "<\uff5cbegin\u2581of\u2581sentence\uff5c>", "<start_of_turn>", "<end_of_turn>", "<bos>", "</s>",
    "[INST]", "[/INST]", "[/inst]", "[ / I N S T ]", "[/IN\u200bST]", "\uff3b/INST\uff3d", "[/\uff29\uff2e\uff33\uff34]",
    "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[TOOL_RESULTS]", "<<SYS>>", "<</SYS>>", "<< sys >>",
    "<system>", "</system>", "< System >", '<system role="x">', "<assistant>", "</assistant>", "</user>",
    "<function_calls>", "</function_results>", '<invoke name="run">', "<invoke>", "</function_calls>",
    "<tool_use_error>", "<user-prompt-submit-hook>", "<local-command-stdout>", "<command-name>", "<environment_details>",
]  # fmt: skip
BRACKETS = "<[\uff1c\u2039\uff3b"


@pytest.mark.parametrize("mark", MARKS)
def test_marks_of_clients_and_models_are_encoded(mark: str) -> None:
    shown = encoded(f"before {mark} after")

    left = shown.replace("<&lt;", "")  # of two brackets the second is enough
    assert [char for char in BRACKETS if char in left] == []
    assert "&lt;" in shown or "&#91;" in shown
    assert encoded(shown) == shown


@pytest.mark.parametrize("mark", MARKS)
def test_json_of_a_tool_spells_their_bracket_and_means_the_same(mark: str) -> None:
    value = {"memories": [{"content": f"a {mark} b\n", "tags": ["inst", mark], "n": 1}]}

    text = json_text(value)

    assert json.loads(text) == value
    assert mark not in text
    assert mark_indexes(json.loads(text)["memories"][0]["content"])


@pytest.mark.parametrize(
    "text",
    [
        "psql -U <user> -h <host> <database>", "git checkout <branch>", "[system] in the .ini, [tool.ruff] in the .toml",
        "items[0][1] and [install](https://example.com)", "vector<s> or List<System.String>", "a | b <- c | d",
        "<b>bold</b> <img src=x> <br/>", "x << 2 >> 1", "[\u30c6\u30b9\u30c8] <\u540d\u524d>", "if a < b and c > d: pass",
        "Dict[str, list[int]]", "<instructions> of the build", "the systems <reminder>",
    ],
)  # fmt: skip
def test_placeholders_code_and_other_tags_stay_as_they_are(text: str) -> None:
    assert encoded(text) == text
    assert json_text(text) == json.dumps(text, ensure_ascii=False)


@pytest.mark.parametrize(
    "text",
    [
        "<|im_end|folklore<|im_end|>",
        "<|a<|b<|c<|im_end|>",
        "<system<|im_end|>",
        "[/INST [/INST]",
    ],
)
def test_what_stands_before_an_escaped_mark_is_none_that_reaches_beyond_it(
    text: str,
) -> None:
    shown = encoded(text)

    assert mark_indexes(shown) == []
    assert encoded(shown) == shown
    assert mark_indexes(json_text(text)) == []


@given(st.lists(st.sampled_from([*PIECES, *MARKS, "\ufdd0", '"', "\\"])).map("".join))
def test_json_of_any_text_means_the_text(text: str) -> None:
    assert json.loads(json_text([text, {text: text}])) == [text, {text: text}]
    assert encoded(encoded(text)) == encoded(text)


@pytest.mark.parametrize(
    "unit",
    [
        "<",
        "[",
        "</system-reminder>",
        "[/INST]",
        "<|im_end|>",
        "< ",
        "<\u0443",
        "<|",
        "[ ",
    ],
)
def test_marks_are_found_in_linear_time(unit: str) -> None:
    assert_linear_time(encoded, unit)
    assert_linear_time(json_text, unit)
