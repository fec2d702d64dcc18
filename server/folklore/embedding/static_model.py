"""Static model of the package wordllama: the vector of a text is a weighted sum of its tokens' vectors.

wordllama itself takes the plain mean and pads a batch to its longest text (64 texts of 32,000 characters would take 512
MB). Here texts are lower case and summed one by one. A token's weight is the square root of its frequency, in a
question also its word's rarity in the searched namespaces. Both find more (benchmarks/RESULTS.md).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from tokenizers import Tokenizer

from folklore.embedding.vectors import Vectors, normalized

# Of tokenizers: no pool of threads, one for each processor, each of which would keep 55 MB from then on.
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


class StaticModel:
    """Table of token vectors (tokens x dimensions, float32) and the tokenizer whose ids are its rows."""

    def __init__(self, table: Vectors, tokenizer: Tokenizer) -> None:
        self._table = table
        self._tokenizer = tokenizer
        self._last: tuple[tuple[str, ...], NDArray[np.int32], NDArray[np.intp]]
        self._last = (), np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.intp)

    @classmethod
    def load(cls) -> StaticModel:
        """Read the files of the package wordllama. Raises ImportError, OSError, ValueError.

        The package is not imported: its import needs a home directory, which some service accounts lack, and it would
        download missing files.
        """
        spec = find_spec("wordllama")
        if spec is None or spec.origin is None:
            raise ModuleNotFoundError("wordllama")
        folder = Path(spec.origin).parent
        tokenizer = Tokenizer.from_buffer(
            (folder / "tokenizers" / "l2_supercat_tokenizer_config.json").read_bytes()
        )
        tokenizer.no_padding()
        tokenizer.no_truncation()
        try:
            with safe_open(
                folder / "weights" / "l2_supercat_256.safetensors", framework="np"
            ) as weights:
                table = weights.get_tensor("embedding.weight")
        except SafetensorError as error:
            raise ValueError("The file with the weights is damaged.") from error
        return cls(np.ascontiguousarray(table, dtype=np.float32), tokenizer)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return unit vectors (n, dimensions)."""
        vectors = np.zeros((len(texts), self._table.shape[1]), dtype=np.float32)
        encodings = self._tokenizer.encode_batch_fast(
            [text.lower() for text in texts], add_special_tokens=False
        )
        for row, encoding in enumerate(encodings):
            if encoding.ids:
                tokens, counts = np.unique(
                    np.asarray(encoding.ids, dtype=np.int32), return_counts=True
                )
                vectors[row] = np.sqrt(counts, dtype=np.float32) @ self._table[tokens]
        return normalized(vectors)

    def embed_question(
        self, pieces: Sequence[str], weights: Sequence[float]
    ) -> Vectors:
        """Return the unit vector (dimensions,) of a question in pieces, each with a weight."""
        tokens, of_piece = self._tokens(tuple(pieces))
        if len(tokens) == 0:
            return np.zeros(self._table.shape[1], dtype=np.float32)
        weight = np.asarray(weights, dtype=np.float32)[of_piece]
        vector: Vectors = weight @ self._table[tokens]
        unit: Vectors = normalized(vector[None])[0]
        return unit

    def _tokens(
        self, pieces: tuple[str, ...]
    ) -> tuple[NDArray[np.int32], NDArray[np.intp]]:
        """Return the tokens of a question and the piece of each; those of the last question are kept."""
        if pieces != self._last[0]:
            lower = [piece.lower() for piece in pieces]
            encoding = self._tokenizer.encode(" ".join(lower), add_special_tokens=False)
            ends = np.cumsum([len(piece) + 1 for piece in lower])
            # A token begins with the space before its word, so its last character determines its piece.
            last = np.asarray([max(end - 1, 0) for _, end in encoding.offsets])
            of_piece = np.minimum(
                np.searchsorted(ends, last, side="right"), len(pieces) - 1
            )
            self._last = pieces, np.asarray(encoding.ids, dtype=np.int32), of_piece
        return self._last[1:]
