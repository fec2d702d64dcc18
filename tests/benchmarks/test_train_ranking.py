"""Training of the ranking, and the document that states its numbers."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.examples import Example, read_examples
from benchmarks.training import on_scale, train, train_cues
from folklore.ranking import features, injection, numbers
from folklore.ranking.trained import weights_for
from folklore.ranking.weights import Ranking
from tests import ROOT

DOCUMENT = ROOT / "docs/ranking.md"
SUBJECTS = "harbour lighthouse invoice carrier label database formatter release printer tea".split()


async def test_training_twice_gives_the_same_bits(tmp_path: Path) -> None:
    lines: list[dict[str, object]] = [
        {
            "type": "memory",
            "namespace": space,
            "source": f"{subject}-{number}",
            "content": text,
        }
        for space in ("one", "two")
        for subject in SUBJECTS
        for number, text in enumerate(
            (
                f"The {subject} is kept by Ada {space}.",
                f"Nobody saw the old {subject} burn.",
            )
        )
    ]
    lines += [
        {
            "type": "question",
            "namespaces": [space],
            "query": f"who keeps the {subject}",
            "evidence": [f"{subject}-0"],
        }
        for space in ("one", "two")
        for subject in SUBJECTS
    ]
    (tmp_path / "small-dev.jsonl").write_text("\n".join(map(json.dumps, lines)))

    with TemporaryDirectory(
        dir="/tmp"
    ) as folder:  # no other run of pytest closes it to the user of the engine
        first, second = [
            await read_examples(tmp_path, Path(folder, name), ("dense", "keyword"))
            for name in "12"
        ]

    trained = train(list(first.values()), dense=True)
    assert trained.relevance
    assert trained == train(list(second.values()), dense=True)
    with_prior = train(list(first.values()), dense=True, prior={"sequence": 4.0})
    for name, weight in with_prior.relevance.items():
        expected = 4.0 if name == "sequence" else 0.0
        found = trained.relevance.get(name, 0.0)
        assert abs(weight - (found + expected) / 2) < 0.01


def test_weights_get_the_scale_of_other_log_odds_and_keep_their_order() -> None:
    features_of_results = np.array([[0.0, 1.0], [1.0, 3.0], [2.0, 0.5], [5.0, 2.0]])
    weights = np.array([0.4, 1.0, -1.5])
    others = np.array([-2.0, 3.0, 0.5, 4.5])

    scaled = on_scale(weights, features_of_results, others)

    before = features_of_results @ weights[:-1] + weights[-1]
    after = features_of_results @ scaled[:-1] + scaled[-1]
    assert abs(after.mean() - others.mean()) < 0.05
    assert abs(after.std() - others.std()) < 0.05
    assert after.argsort().tolist() == before.argsort().tolist()


async def test_cues_are_given_to_a_part_of_the_memories_and_leave_the_other_weights_as_they_are(
    tmp_path: Path,
) -> None:
    lines: list[dict[str, object]] = []
    for subject in SUBJECTS:
        for number, text in enumerate(
            (
                f"The {subject} is kept by Ada.",
                f"Nobody saw the old {subject} burn.",
            )
        ):
            memory = {"source": f"{subject}-{number}", "content": text}
            lines.append({"type": "memory", "namespace": "one", **memory})
        prompt = {
            "text": f"somebody lost a key of the {subject}",
            "evidence": [f"{subject}-0"],
        }
        lines.append({"type": "prompt", "namespace": "one", **prompt})
    thanks = {"text": "thank you, that will do", "evidence": []}
    lines.append({"type": "prompt", "namespace": "one", **thanks})
    cues = [
        {"namespace": "one", "source": f"{subject}-0", "cues": [f"lost key of the {subject}"]}
        for subject in SUBJECTS
    ]  # fmt: skip
    (tmp_path / "prompts-dev.jsonl").write_text("\n".join(map(json.dumps, lines)))
    (tmp_path / "prompts-dev.cues.jsonl").write_text("\n".join(map(json.dumps, cues)))
    found: dict[str, list[Example]] = {}
    with TemporaryDirectory(dir="/tmp") as folder:
        for share in ("all", "none"):
            found |= await read_examples(
                tmp_path, Path(folder), ("dense", "keyword"), share, "prompts-dev"
            )

    kept = weights_for("bundled")
    every = found["prompts-dev-all-cued"]
    trained = train_cues(kept, every, every, dense=True)
    cued = list(features.CONFIDENCE).index("cued")
    assert {
        name: float(sum(one.confidence[:, cued].sum() for one in examples) > 0)
        for name, examples in found.items()
    } == {"prompts-dev-all-cued": 1.0, "prompts-dev": 0.0}
    assert trained.confidence["cue words"] > 0
    for name in set(kept.confidence) - features.OF_CUES:
        assert trained.confidence[name] == kept.confidence[name]
    for name in set(kept.relevance) - features.OF_CUES:
        assert trained.relevance[name] == kept.relevance[name]
    assert (trained.score, trained.floor) == (kept.score, kept.floor)
    assert trained.score_among_cues["confidence"] > 0


def test_the_document_states_the_numbers_and_the_features_of_the_code() -> None:
    text = " ".join(DOCUMENT.read_text().split())
    in_words = {0.3: "three"}
    stated = [
        f"k₁ = {numbers.K1}, b = {numbers.B}",
        f"k = {numbers.RRF_K:g} (`rrf_k`)",
        f"at least {numbers.LEAST_FETCHED}, every filter",
        f"the best {numbers.SURROUNDED} (by reciprocal rank fusion)",
        f"the {numbers.NEAREST} nearest candidates",
        f"1 / (1 + r / {numbers.RANK:g})",
        f"min(1, {numbers.LONG:g} / length), × {numbers.ASKING:g} for",
        f"(cos − {numbers.SIMILAR:g}) / {numbers.RANGE:g}",
        f"*By vectors*: cos ≥ {numbers.SAME_SUBJECT:g}, or",
        f"in context, cos ≥ {numbers.SAME_SUBJECT_IN_CONTEXT:g} on",
        f"at most {in_words[numbers.REFLECTIONS]} in ten results",
        f"the odds, and at least {numbers.CLEAR:g})",
        f"Where at least {numbers.MANY_CUED:g} of the candidates have cues",
        f"until {Ranking().postings_budget:,} postings",
        f"score from {injection.FULL_WITH_CUES:g} | from {injection.FULL_WITHOUT:g} |",
        f"is whole | from {injection.LIKELY_WITH_CUES:g} | from {injection.LIKELY:g} |",
    ]

    assert [one for one in stated if one not in text] == []
    assert set(weights_for("bundled").relevance) <= set(features.RELEVANCE)
    assert [
        name
        for name in features.RELEVANCE
        if name.split(",")[0].removesuffix(" rank") not in text
    ] == []
