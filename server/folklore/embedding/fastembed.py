"""Local ONNX models by the optional package fastembed. A command downloads a model once."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from folklore import pip_install
from folklore.embedding.vectors import Vectors
from folklore.errors import EmbedderUnavailable


class FastembedModel:
    """A model that is loaded from `cache`. Never uses the network."""

    def __init__(self, name: str, cache: Path) -> None:
        self._name = name
        self._loaded = load(name, cache)

    def __call__(self, texts: Sequence[str], *, question: bool = False) -> Vectors:
        """Return the vectors as the package makes them."""
        try:
            generated = (
                self._loaded.query_embed if question else self._loaded.passage_embed
            )(list(texts))
            return np.array(list(generated), dtype=np.float32)
        except (RuntimeError, ValueError, OSError) as error:
            raise EmbedderUnavailable(
                f"The model {self._name} failed ({type(error).__name__})."
            ) from error


def load(name: str, cache: Path, *, fetch: bool = False) -> Any:
    """Return fastembed's model of this name. `fetch` downloads missing files, with a progress bar on stderr.

    Raises EmbedderUnavailable if the package, the model or its files are missing.
    """
    try:
        from fastembed import TextEmbedding  # optional, and its import takes a second
    except ImportError as error:
        raise EmbedderUnavailable(
            "The package fastembed is not installed.",
            hint=f"Run: {pip_install('fastembed')}",
        ) from error
    if name.lower() not in {
        entry["model"].lower() for entry in TextEmbedding.list_supported_models()
    }:
        raise EmbedderUnavailable(
            f"fastembed knows no model {name!r}.",
            hint="Its list: https://qdrant.github.io/fastembed/examples/",
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return TextEmbedding(name, cache_dir=str(cache), local_files_only=not fetch)
    except (RuntimeError, ValueError, OSError) as error:
        if fetch:
            raise EmbedderUnavailable(
                f"The model {name} could not be downloaded ({type(error).__name__}).",
                hint=f"Try again with a network connection, or copy the folder {cache} from a machine that has it.",
            ) from error
        raise EmbedderUnavailable(
            f"The model {name} is not on this machine ({cache}).",
            hint="Download it once with `folklore embeddings fetch`.",
        ) from error
