"""Weights of relevance, confidence and score, trained on examples of retrieval sets, each set weighing the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from benchmarks.examples import FOREIGN, Example, Matrix
from benchmarks.metrics import auroc, hit_at, mean, recall_at, reciprocal_rank
from folklore.ranking.features import CONFIDENCE, OF_CUES, RELEVANCE
from folklore.ranking.fusion import behind_best, leads
from folklore.ranking.trained import Weights, reciprocal_ranks

_RIDGE = 1e-3
_STEPS = 30
# Parts of the confidence that need vectors.
_OF_VECTORS = ("meaning", "cue meaning")
# Results of a question that confidence is trained on: those that an answer shows.
_SHOWN = 10
# Precision of the results from the lines of strong and fair matches on: fair ones shall answer in half of the cases in
# sets that training has not seen, and above .55 the line of a set rests on a handful of results. Share of answers that
# the floor keeps.
_STRONG = 0.8
_FAIR = 0.55
_KEPT = 0.97
_DIGITS = 2
# Shares of the questions of a set, those with the greatest scores first, of which precision is given.
_COVERED = (0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0)

# The scores of the results of a question, and which of them are right.
Scored = tuple[Matrix, NDArray[np.bool_]]


class Trained(Weights):
    """Weights, as they rank an example."""

    def relevances(self, example: Example) -> Matrix:
        """Return the relevance (n,) of the candidates."""
        relevance: Matrix = example.relevance @ _as_vector(self.relevance, RELEVANCE)
        return relevance

    def shown(self, example: Example) -> tuple[NDArray[np.int64], Matrix]:
        """Return the candidates that are the first results, and what their scores are made of (n, 4)."""
        relevance = self.relevances(example)
        order = np.argsort(-relevance, kind="stable")
        best = relevance[order]
        confidence = example.confidence[order]
        cued = confidence[:, list(CONFIDENCE).index("cued")] > 0
        lead = leads(best)
        behind = behind_best(best, cued)
        doubts = confidence @ _as_vector(self.confidence, CONFIDENCE)
        doubts = doubts + self.confidence["bias"]
        return order[:_SHOWN], np.stack([best, lead, behind, doubts], axis=1)[:_SHOWN]

    def scores(self, made_of: Matrix, cued_share: float) -> Matrix:
        """Return the scores of results, in order: the greatest of each and of those after it."""
        relevance, lead, behind, doubts = made_of.T
        confidence = _probability(doubts)
        return self.scores_of(relevance, lead, behind, confidence, cued_share)

    def scored(self, examples: Sequence[Example]) -> list[Scored]:
        """Return the scores of the first results of each example, and which of these are right."""
        scored = []
        for example in examples:
            results, made_of = self.shown(example)
            scores = self.scores(made_of, _cued_share(example))
            scored.append((scores, example.right[results]))
        return scored

    def greatest_confidences(self, examples: Sequence[Example]) -> list[float]:
        """Return the greatest confidence, in log odds, among the first results of each example."""
        return [float(self.shown(example)[1][:, -1].max()) for example in examples]


def train(
    sets: Sequence[Sequence[Example]],
    *,
    dense: bool,
    prior: Mapping[str, float] | None = None,
) -> Trained:
    """Return weights trained on these sets; without `dense`, only of features that need no vectors.

    The relevance is the mean of what is found and of a `prior`, if there is one.
    """
    relevance = _positive_relevance(sets, dense=dense)
    if prior is not None:
        relevance = np.round((relevance + _as_vector(prior, RELEVANCE)) / 2, _DIGITS)
    by_feature = {}
    for name, weight in zip(RELEVANCE, relevance, strict=True):
        if weight:
            by_feature[name] = float(weight)
    judges = [name for name in CONFIDENCE if dense or name not in _OF_VECTORS]
    confidence = train_confidence(sets, relevance, _columns(judges, CONFIDENCE))
    by_judge = _by_name([*judges, "bias"], confidence)
    trained = Trained(by_feature, by_judge, {}, {}, 1.0, 1.0, 0.0)
    trained = replace(trained, score=_train_score(trained, sets))
    among_cues = _train_score_among_cues(trained, sets)
    trained = replace(trained, score_among_cues=among_cues)
    scored = []
    doubts: list[float] = []
    for examples in sets:
        answered, _ = _with_and_without(examples)
        scored.append(trained.scored(answered))
        doubts += trained.greatest_confidences(answered)
    doubts.sort()
    floor = _probability(doubts[round((1 - _KEPT) * len(doubts))])
    return replace(
        trained,
        strong=_line(scored, _STRONG),
        fair=_line(scored, _FAIR),
        floor=round(float(floor), 3),
    )


def _positive_relevance(sets: Sequence[Sequence[Example]], *, dense: bool) -> Matrix:
    """Return the weight of each feature of the relevance.

    Every feature speaks for a memory: one that the others make needless is left out, with the weight 0.
    """
    columns = []
    for column, (_, group) in enumerate(RELEVANCE.values()):
        if dense or group != "dense":
            columns.append(column)
    weights = train_relevance(sets, columns)
    while (weights <= 0).any():
        columns = _positive(columns, weights)
        weights = train_relevance(sets, columns)
    relevance = np.zeros(len(RELEVANCE))
    relevance[columns] = weights
    return relevance


def train_relevance(
    sets: Sequence[Sequence[Example]], columns: Sequence[int]
) -> Matrix:
    """Return the weights by pairs of one right and one other candidate; each set and each question weighs the same."""
    differences = []
    shares = []
    for examples in sets:
        mixed = _mixed(examples)
        for example in mixed:
            pairs = _pairs(example, columns)
            differences.append(pairs)
            shares.append(np.full(len(pairs), 1.0 / len(pairs) / len(mixed)))
    every_pair = np.concatenate(differences)
    # A pair and its reverse, so that there is no bias.
    return _logistic(every_pair, np.ones(len(every_pair)), np.concatenate(shares))


def _mixed(examples: Sequence[Example]) -> list[Example]:
    """Return the examples that have both right and other candidates."""
    return [one for one in examples if one.right.any() and not one.right.all()]


def _pairs(example: Example, columns: Sequence[int]) -> Matrix:
    """Return the differences of the features between each right and each other candidate."""
    features = example.relevance[:, columns]
    right = features[example.right]
    others = features[~example.right]
    pairs: Matrix = right[:, None, :] - others[None]
    return pairs.reshape(-1, len(columns))


@dataclass(frozen=True, slots=True)
class _Results:
    """Results of questions to learn from: their features, which are right, and how much each weighs."""

    features: list[Matrix] = field(default_factory=list)
    right: list[Matrix] = field(default_factory=list)
    shares: list[Matrix] = field(default_factory=list)

    def add(self, features: Matrix, right: NDArray[np.bool_], questions: int) -> None:
        """Add the results of one of so many questions, which weigh the same."""
        self.features.append(features)
        self.right.append(right.astype(float))
        share = 1.0 / max(len(right), 1) / questions
        self.shares.append(np.full(len(right), share))

    def weights(self, fixed: Matrix | None = None) -> Matrix:
        """Return the weights of the features, and last the bias; `fixed` as in _logistic."""
        features = np.concatenate(self.features)
        with_bias = np.column_stack([features, np.ones(len(features))])
        right = np.concatenate(self.right)
        return _logistic(with_bias, right, np.concatenate(self.shares), fixed)


def train_confidence(
    sets: Sequence[Sequence[Example]], relevance: Matrix, columns: Sequence[int]
) -> Matrix:
    """Return the weights and the bias: of the first ten results, those with and without an answer weighing the same."""
    learned = _Results()
    for examples in sets:
        answered = [example for example in examples if example.question.evidence]
        others = [example for example in examples if not example.question.evidence]
        for group in (answered, others):
            for example in group:
                order = np.argsort(-(example.relevance @ relevance), kind="stable")
                best = order[:_SHOWN]
                features = example.confidence[best][:, columns]
                learned.add(features, example.right[best], len(group))
    return learned.weights()


def _train_score(
    trained: Trained, sets: Sequence[Sequence[Example]]
) -> dict[str, float]:
    """Return the weights of relevance, lead and confidence in the score, and the bias."""
    learned = _Results()
    for examples in sets:
        for group in _with_and_without(examples):
            for example in group:
                results, made_of = trained.shown(example)
                relevance, lead, _, doubts = made_of.T
                features = np.stack([relevance, lead, doubts], axis=1)
                learned.add(features, example.right[results], len(group))
    return _by_name(["relevance", "lead", "confidence", "bias"], learned.weights())


def _train_score_among_cues(
    trained: Trained, sets: Sequence[Sequence[Example]]
) -> dict[str, float]:
    """Return the weights of the score where many candidates have cues; none where no example has so many."""
    learned = _Results()
    first_features = []
    first_log_odds = []
    for examples in sets:
        for group in _with_and_without(examples):
            cued = [example for example in group if _cued_share(example) > 0.0]
            for example in cued:
                results, made_of = trained.shown(example)
                _, _, behind, doubts = made_of.T
                ranks = reciprocal_ranks(len(results))
                features = np.stack([behind, ranks, doubts], axis=1)
                learned.add(features, example.right[results], len(cued))
                first_features.append(features[0])
                first_log_odds.append(_score_log_odds(trained, made_of)[0])
    if not learned.features:
        return {}
    weights = on_scale(
        learned.weights(), np.array(first_features), np.array(first_log_odds)
    )
    names = ["behind", "reciprocal rank", "confidence", "bias"]
    return _by_name(names, weights)


def _score_log_odds(trained: Trained, made_of: Matrix) -> Matrix:
    """Return the log odds of results by the score of what has no cues."""
    relevance, lead, _, doubts = made_of.T
    log_odds: Matrix = (
        trained.score["relevance"] * relevance
        + trained.score["lead"] * lead
        + trained.score["confidence"] * doubts
        + trained.score["bias"]
    )
    return log_odds


def on_scale(weights: Matrix, features: Matrix, log_odds: Matrix) -> Matrix:
    """Return weights whose log odds have the mean and the spread of others.

    A typed prompt has an answer much more seldom than a question of another set, and no other set has cues. With the
    scale of the scores without cues, strong and fair mean the same everywhere: above these lines as many of the first
    results are right.
    """
    own = features @ weights[:-1] + weights[-1]
    factor = log_odds.std() / own.std()
    scaled = weights * factor
    scaled[-1] += log_odds.mean() - factor * own.mean()
    rounded: Matrix = np.round(scaled, _DIGITS)
    return rounded


def _cued_share(example: Example) -> float:
    """Return how many of the candidates have cues, 0 to 1."""
    cued = example.confidence[:, list(CONFIDENCE).index("cued")]
    return float(cued.mean())


def train_cues(
    kept: Weights,
    examples: Sequence[Example],
    all_cued: Sequence[Example],
    *,
    dense: bool,
) -> Trained:
    """Return weights with those of cues trained on one set, all others kept: what has no cues is ranked as before.

    The relevance is that of `examples`, the confidence that of `all_cued`, in which all memories of the projects have
    cues: there a question without an answer must not find one among so many phrases. The score among cues is trained on
    both.
    """
    relevance = without_cues(kept.relevance)
    relevance |= _relevance_of_cues(relevance, examples, dense=dense)
    trained = Trained(
        relevance,
        without_cues(kept.confidence),
        kept.score,
        {},
        kept.strong,
        kept.fair,
        kept.floor,
    )
    of_cues = _confidence_of_cues(trained, all_cued, dense=dense)
    trained = replace(trained, confidence={**trained.confidence, **of_cues})
    among_cues = _train_score_among_cues(trained, [examples, all_cued])
    return replace(trained, score_among_cues=among_cues)


def cues_left_out(
    kept: Weights,
    examples: Sequence[Example],
    all_cued: Sequence[Example],
    *,
    dense: bool,
) -> dict[str, dict[str, float]]:
    """Return how well the best scores tell prompts with an answer from those without, each namespace left out in training."""
    namespaces = dict.fromkeys(one.question.namespaces for one in all_cued)
    trained = {}
    for namespace in namespaces:
        others = [one for one in examples if one.question.namespaces != namespace]
        cued = [one for one in all_cued if one.question.namespaces != namespace]
        trained[namespace] = train_cues(kept, others, cued, dense=dense)
    return {
        "as trained": _best_of_prompts(trained, examples),
        "all cued": _best_of_prompts(trained, all_cued),
    }


def _best_of_prompts(
    trained: Mapping[tuple[str, ...], Trained], examples: Sequence[Example]
) -> dict[str, float]:
    """Return how well the best score and confidence separate prompts, by the weights of their namespace."""
    own = [one for one in examples if one.question.category != FOREIGN]
    scores = []
    confidences = []
    for group in _with_and_without(own):
        best_scores = []
        best_confidences = []
        for example in group:
            weights = trained[example.question.namespaces]
            [(result_scores, _)] = weights.scored([example])
            best_scores.append(float(result_scores[0]))
            best_confidences += weights.greatest_confidences([example])
        scores.append(best_scores)
        confidences.append(best_confidences)
    return {
        "AUROC of the score": auroc(*scores),
        "AUROC of confidence": auroc(*confidences),
    }


def without_cues(weights: Mapping[str, float]) -> dict[str, float]:
    """Return the weights of the features that are not of cues."""
    return {name: weight for name, weight in weights.items() if name not in OF_CUES}


def _relevance_of_cues(
    kept: Mapping[str, float], examples: Sequence[Example], *, dense: bool
) -> dict[str, float]:
    """Return the positive weights of the features of cues beside the kept ones of all others."""
    columns = []
    for column, (name, (_, group)) in enumerate(RELEVANCE.items()):
        if name in OF_CUES and (dense or group != "dense"):
            columns.append(column)
    differences = []
    shares = []
    for example in _mixed(examples):
        pairs = _pairs(example, range(len(RELEVANCE)))
        differences.append(pairs)
        shares.append(np.full(len(pairs), 1.0 / len(pairs)))
    every_pair = np.concatenate(differences)
    right = np.ones(len(every_pair))
    share_of_each = np.concatenate(shares)
    known = every_pair @ _as_vector(kept, RELEVANCE)
    names = list(RELEVANCE)
    while columns:
        weights = _logistic(every_pair[:, columns], right, share_of_each, known)
        if (weights > 0).all():
            return _by_name([names[column] for column in columns], weights)
        columns = _positive(columns, weights)
    return {}


def _confidence_of_cues(
    trained: Trained, examples: Sequence[Example], *, dense: bool
) -> dict[str, float]:
    """Return the weights of cues in the confidence, as far as they differ between results of one set."""
    judges = []
    for name in CONFIDENCE:
        if name in OF_CUES and (dense or name not in _OF_VECTORS):
            judges.append(name)
    columns = _columns(judges, CONFIDENCE)
    learned = _Results()
    known = []
    for group in _with_and_without(examples):
        for example in group:
            results, made_of = trained.shown(example)
            features = example.confidence[results][:, columns]
            learned.add(features, example.right[results], len(group))
            known.append(made_of[:, -1])
    # The bias takes up how seldom anything answers in this set, and is left out.
    weights = learned.weights(np.concatenate(known))[:-1]
    return _by_name(judges, weights)


def _logistic(
    features: Matrix, right: Matrix, shares: Matrix, fixed: Matrix | None = None
) -> Matrix:
    """Return the weights of a logistic regression by Newton's method, with a small ridge on scaled features.

    `fixed` are added to the sums.
    """
    given = np.zeros(len(features)) if fixed is None else fixed
    deviation = features.std(axis=0)
    scale = np.where(deviation > 0, deviation, 1.0)
    scaled = features / scale
    shares = shares / shares.sum()
    weights = np.zeros(features.shape[1])
    ridge = _RIDGE * np.eye(len(weights))
    for _ in range(_STEPS):
        likely = _probability(np.clip(given + scaled @ weights, -30, 30))
        slope = scaled.T @ (shares * (right - likely)) - ridge @ weights
        certainty = shares * likely * (1 - likely)
        curve = (scaled * certainty[:, None]).T @ scaled + ridge
        weights = weights + np.linalg.solve(curve, slope)
    found: Matrix = np.round(weights / scale, _DIGITS)
    return found


def _line(sets: Sequence[Sequence[Scored]], precision: float) -> float:
    """Return the least score from which on this share of the results is right in every set, or that a set never has."""
    return round(max(_line_of(scored, precision) for scored in sets), _DIGITS)


def _line_of(answers: Sequence[Scored], precision: float) -> float:
    scores, right = _joined(answers)
    order = np.argsort(-scores, kind="stable")
    reached = np.cumsum(right[order]) / np.arange(1, len(order) + 1)
    after_first_results = np.arange(len(order)) >= _SHOWN
    enough = np.flatnonzero((reached >= precision) & after_first_results)
    if len(enough):
        last = enough[-1]
    else:
        last = min(_SHOWN, len(order) - 1)
    return float(scores[order[last]])


def measured(trained: Trained, examples: Sequence[Example]) -> dict[str, float]:
    """Return the figures of a set that was left out."""
    asked = [example for example in examples if example.question.evidence]
    pairs = []
    for example in asked:
        order = np.argsort(-trained.relevances(example), kind="stable")
        answer = [example.sources[index] for index in order]
        pairs.append((answer, example.question.evidence))
    scored = trained.scored([example for example in asked if example.sources])
    scores, right = _joined(scored)
    matches = {
        "strong": scores >= trained.strong,
        "fair": scores >= trained.fair,
        "weak": scores < trained.fair,
    }
    figures: dict[str, float] = {
        "questions": len(asked),
        "R@10": mean([recall_at(10, *pair) for pair in pairs]),
        "R@5": mean([recall_at(5, *pair) for pair in pairs]),
        "MRR": mean([reciprocal_rank(*pair) for pair in pairs]),
        "hit@5": mean([hit_at(5, *pair) for pair in pairs]),
    }
    figures |= _silence(trained, examples)
    for name, chosen in matches.items():
        figures[name] = float(right[chosen].mean()) if chosen.any() else 1.0
    for name, chosen in matches.items():
        figures[f"{name} results"] = int(chosen.sum())
    return figures | _by_coverage(scored)


def _silence(trained: Trained, examples: Sequence[Example]) -> dict[str, float]:
    """Return how well the greatest confidence separates questions with an answer from others, if there are any."""
    answered, others = _with_and_without(examples)
    if not answered or not others:
        return {}
    right = trained.greatest_confidences(answered)
    return {"AUROC": auroc(right, trained.greatest_confidences(others))}


def _by_coverage(scored: Sequence[Scored]) -> dict[str, float]:
    """Return how often the first result is right, in the shares of the questions whose first results score most."""
    firsts = [(float(scores[0]), bool(right[0])) for scores, right in scored]
    firsts.sort(key=lambda first: -first[0])
    rights = [right for _, right in firsts]
    figures = {}
    for share in _COVERED:
        count = max(round(share * len(rights)), 1)
        figures[f"first right in {share:.0%}"] = mean(rights[:count])
    return figures


def _with_and_without(
    examples: Sequence[Example],
) -> tuple[list[Example], list[Example]]:
    """Return the examples with candidates: those with an answer, and those without one."""
    answered = []
    others = []
    for example in examples:
        if not example.sources:
            continue
        if example.question.evidence:
            answered.append(example)
        else:
            others.append(example)
    return answered, others


def _joined(scored: Sequence[Scored]) -> Scored:
    scores = np.concatenate([scores for scores, _ in scored])
    right = np.concatenate([right for _, right in scored])
    return scores, right


def _probability(log_odds: Matrix | float) -> Matrix:
    probability: Matrix = 1.0 / (1.0 + np.exp(-log_odds))
    return probability


def _as_vector(weights: Mapping[str, float], features: Mapping[str, object]) -> Matrix:
    """Return the weights of all features in order, 0 for one without."""
    return np.array([weights.get(name, 0.0) for name in features])


def _by_name(names: Sequence[str], weights: Matrix) -> dict[str, float]:
    return dict(zip(names, map(float, weights), strict=True))


def _columns(names: Sequence[str], features: Mapping[str, object]) -> list[int]:
    every = list(features)
    return [every.index(name) for name in names]


def _positive(columns: Sequence[int], weights: Matrix) -> list[int]:
    """Return the columns whose weight is positive."""
    paired = zip(columns, weights, strict=True)
    return [column for column, weight in paired if weight > 0]
