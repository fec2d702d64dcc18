"""Assertions: which sentences say what holds from now on, in ten languages."""

import pytest

from folklore.text.hooks.assertions import alternatives, assertions

STATED = (
    "No, don't use requests here, always httpx.", "From now on new endpoints live under /api/v2.",
    "Let's switch the queue to arq.", "it turned out that the proxy drops the header",
    "Please note: for now we deploy on Mondays.", "I prefer small commits",
    "every new dependency needs a line in third-party.md",
    "tenant names are lower case with dashes, the export chokes on anything else",
    "los pedidos se archivan a los 90 días", "Wir haben uns auf pnpm geeinigt.", "Nein, wir nehmen kein Redux mehr.",
    "Ich mag keine Kommentare, die den Code wiederholen.", "a partir de hoy todas las ramas salen de develop",
    "no uses print, usa siempre el logger", "on ne déploie jamais le vendredi", "le bug venait du cache de Varnish",
    "descobrimos que o erro vinha do proxy", "nunca faças push direto para a main", "d'ora in poi usiamo ruff",
    "preferisco i commit piccoli", "vanaf nu schrijven we alles in het Engels", "ik heb liever kleine commits",
    "запомни: по пятницам мы не деплоим", "мы решили перейти на Postgres", "从现在开始提交信息用英文",
    "不要用requests，一律用httpx", "金曜日は絶対にデプロイしない", "Postgresに移行することに決めました",
)  # fmt: skip
NOT_STATED = (
    "Let's use a smaller font.", "the test never finishes", "every request returns 500 now",
    "why do we always get a 500 here?", "for now just use red", "Agreed.", "always fun when the printer breaks, huh",
    "please note the output below and tell me what is wrong", "the basket is empty again",
    "move the filters into their own module", "no, I meant the second file", "der Test schlägt immer noch fehl",
    "nimm erstmal die alte Version", "por ahora déjalo así", "le test échoue toujours, regarde les logs",
    "a página não abre mais", "la pagina non si apre più", "voor nu is dit goed", "пока оставь так", "页面打不开了",
    "とりあえずこのままで",
)  # fmt: skip


def test_a_sentence_that_holds_from_now_on_is_an_assertion() -> None:
    for sentence in STATED:
        assert assertions(f"Thanks!\n{sentence}\nNow go on.") == (sentence,), sentence


def test_a_request_a_symptom_or_what_holds_for_now_is_none() -> None:
    for sentence in NOT_STATED:
        assert assertions(sentence) == (), sentence


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("```\n# never push to main\n```\n> From now on we use tabs.\nWhat is this?", []),
        ("```\ncode\n```From now on we use tabs.", ["From now on we use tabs."]),
        ("\u2022 never push to main\n\t* from now on we\u2019ll use X",
         ["never push to main", "from now on we'll use X"]),
        ("Never do A here. Never do B. Never do A here. Never C it. Never D it. Never E it. Never F it.",
         ["Never do A here.", "Never do B.", "Never C it.", "Never D it.", "Never E it."]),  # five, each once
        (f"from now on {'x' * 388}", [f"from now on {'x' * 388}"]), (f"from now on {'x' * 389}", []),
        (f"{'x ' * 4_000}\nNever push.", []),
        ("From now on tabs, right?", []), ("Did we agree to use pnpm?", []),
        ("The harbour is open. Agreed.", []), ("never push", ["never push"]), ("never pus", []),
        ("\u6c38\u8fdc\u4e0d\u8981\u52a8", ["\u6c38\u8fdc\u4e0d\u8981\u52a8"]), ("\u4e0d\u8981\u52a8\u5b83", []),
        ("The shop runs on Postgres", ["The shop runs on Postgres"]), ("The shop runs Postgres", []),
        ("Write that down.", []), ("Books have 7 % VAT. Please remember this.", ["Books have 7 % VAT."]),
    ],
)  # fmt: skip
def test_few_short_sentences_outside_of_code_and_quotations_are_assertions(
    text: str, stated: list[str]
) -> None:
    assert list(assertions(text)) == stated


def test_a_section_is_one_expression_with_the_sections_that_it_names() -> None:
    assert alternatives("CHOICE").startswith(r"#?\d{1,2}|[a-z]|first|second|")
    assert "|none|(?:erste|" in alternatives("CHOICE")
    assert alternatives("CHOICE").endswith("|entrambi")
    assert alternatives("RULE").startswith(
        rf"^(?:{alternatives('ALWAYS')})\b|(?:{alternatives('BEFORE')})\b"
    )


def test_an_assistant_states_decisions_and_causes_and_no_rules() -> None:
    text = "Always close the file. The root cause was a full disk. Never mind."

    assert assertions(text, of_person=False) == ("The root cause was a full disk.",)
