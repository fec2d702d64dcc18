"""Training of the ranking: weights of relevance and confidence from retrieval sets, each set weighing the same."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from benchmarks.command_line import main, print_json
from benchmarks.examples import PROMPTS, Cued, paths_of_sets, read_examples
from benchmarks.training import (
    cues_left_out,
    measured,
    train,
    train_cues,
    without_cues,
)
from folklore import __version__
from folklore.ranking.trained import Weights, weights_for
from folklore.ranking.weights import Branch

WEIGHTS = Path(__file__).parent.parent / "server/folklore/ranking/weights.json"
# What the provenance says of a relevance with a prior.
_MEAN = "mean with that of the bundled model"


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False, exists=True))
@click.option(
    "--model",
    type=click.Choice(["bundled", "contextual", "none"]),
    default="bundled",
    show_default=True,
)
@click.option(
    "--home",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep the stored sets here.",
)
@click.option(
    "--cues",
    "share",
    type=click.Choice(["all", "half", "none"]),
    default="half",
    show_default=True,
    help="Memories of prompts-dev that have the cues of prompts-dev.cues.jsonl.",
)
@click.option(
    "--only-cues",
    is_flag=True,
    help="Train the weights of cues on prompts-dev; keep the others.",
)
def train_ranking(
    folder: Path, model: str, home: Path | None, share: Cued, only_cues: bool
) -> None:
    """Train the ranking on the sets *-dev.jsonl of FOLDER; print each set's figures, left out; write the weights.

    The vectors are those of the embedding model of the settings; `none` trains the weights for words alone.
    """
    dense = model != "none"
    branches: Sequence[Branch] = ("dense", "keyword") if dense else ("keyword",)
    cues = folder / f"{PROMPTS}.cues.jsonl"
    provenance: dict[str, Any] = {"code": __version__, "date": _today()}
    if only_cues:
        [prompts] = asyncio.run(
            read_examples(folder, home, branches, share, PROMPTS)
        ).values()
        [cued] = asyncio.run(
            read_examples(folder, home, branches, "all", PROMPTS)
        ).values()
        kept = weights_for(model)
        trained = train_cues(kept, prompts, cued, dense=dense)
        figures = cues_left_out(kept, prompts, cued, dense=dense)
        print_json({"left out": figures, "weights": asdict(trained)})
        provenance["share"] = share
        provenance["sets"] = _digests([folder / f"{PROMPTS}.jsonl", cues])
        _write(model, trained, {"cues": provenance})
        return
    sets = asyncio.run(read_examples(folder, home, branches, share))
    prior = _prior(model)
    left_out = {}
    for name, examples in sets.items():
        others = [sets[other] for other in sets if other != name]
        trained = train(others, dense=dense, prior=prior)
        left_out[name] = measured(trained, examples)
    trained = train(list(sets.values()), dense=dense, prior=prior)
    paths = paths_of_sets(folder)
    if share != "none" and cues.exists():
        paths.append(cues)
    provenance |= {"cues of": share, "sets": _digests(paths)}
    if prior is not None:
        provenance["relevance"] = _MEAN
    _write(model, trained, provenance, replaced=True)
    print_json({"left out": left_out, "weights": asdict(trained)})


def _prior(model: str) -> Mapping[str, float] | None:
    """Return the relevance of the bundled model for one that reads in context: it saw more sets, of long chats too.

    What the two share, words and neighbours, is then learned from all of them.
    """
    if model != "contextual":
        return None
    return without_cues(weights_for("bundled").relevance)


def _write(
    model: str,
    trained: Weights,
    provenance: Mapping[str, Any],
    *,
    replaced: bool = False,
) -> None:
    """Write the weights of a model, with where they are from, which is added unless all were `replaced`."""
    weights: dict[str, Any] = {"provenance": {}, "models": {}}
    if WEIGHTS.exists():
        weights = json.loads(WEIGHTS.read_text())
    weights["models"][model] = asdict(trained)
    earlier = {} if replaced else weights["provenance"].get(model, {})
    weights["provenance"][model] = {**earlier, **provenance}
    WEIGHTS.write_text(json.dumps(weights, indent=1, sort_keys=True) + "\n")


def _today() -> str:
    return datetime.now(UTC).date().isoformat()


def _digests(paths: Sequence[Path]) -> dict[str, str]:
    digests = {}
    for path in paths:
        digests[path.stem] = hashlib.sha256(path.read_bytes()).hexdigest()
    return digests


if __name__ == "__main__":
    main(train_ranking)
