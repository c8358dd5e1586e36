"""Universal Sentence Encoder, multilingual v3: sixteen languages in one space, in plain numpy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from threading import Lock
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from bakeoff_providers import weights
from bakeoff_providers.base import EmbeddingBatch, ModelCard, Provider, Role, Vectors
from bakeoff_providers.errors import InputError, Unavailable, lack
from bakeoff_providers.needs import Needs
from bakeoff_providers.shared_options import OneModel

Floats = npt.NDArray[np.float32]

# How many tokens each of the three convolutions sees before and after its own.
_WINDOWS = {2: (0, 1), 3: (1, 1), 5: (2, 2)}
_TABLES = 17  # the word table is split: piece p is row p // 17 of table p % 17
_LIMIT = Lock()  # BLAS threads are set per process, so one call at a time


class UniversalSentenceEncoder(Provider):
    """Universal Sentence Encoder multilingual v3: sixteen languages, 512 dimensions; quick, for short texts.

    Convolutions over 2, 3 and 5 tokens, averaged, then four dense layers; a text is never cut. Texts are computed
    one by one, so that a vector is the same to the bit whatever its batch.
    """

    name: ClassVar[str] = "use"
    default_model: ClassVar[str] = "universal-sentence-encoder-multilingual-3"
    local: ClassVar[bool] = True
    own_tokens: ClassVar[bool] = True
    extra: ClassVar[str | None] = "use"
    modules: ClassVar[tuple[str, ...]] = ("sentencepiece", "threadpoolctl")
    distributions = ("numpy", "sentencepiece")

    def __init__(self, *, model: OneModel = None) -> None:
        if model not in (None, self.default_model):
            raise InputError(f"unknown model {model!r}", place=self.name, remedy=f"known: {self.default_model}")
        self.card = ModelCard(name=self.default_model, dimensions=512, batch_items=256)

    @classmethod
    def needs(cls, **options: Any) -> Needs:
        """The library and the weights."""
        return replace(super().needs(**options), weights=cls.name)

    def identity(self, role: Role) -> dict[str, str | int | float | bool | None]:
        """The weights' hash is the revision."""
        return {**super().identity(role), "revision": weights.find_weights(self.name).files["weights.npz"][:12]}

    def embed(self, texts: Sequence[str], role: Role) -> EmbeddingBatch:  # noqa: ARG002 - one space for both roles
        """One text at a time: no padding, and no dependence on the batch."""
        tokenizer, network = self._tokenizer, self._network
        vectors: Vectors = np.empty((len(texts), self.card.dimensions or 0), dtype=np.float32)
        tokens = 0
        with _LIMIT, self._blas.limit(limits=1):
            for row, text in enumerate(texts):
                pieces = tokenizer.encode(text) or [tokenizer.unk_id()]
                ids = [tokenizer.bos_id(), *pieces, tokenizer.eos_id()]
                vectors[row] = network.vector(ids)
                tokens += len(ids)
        return EmbeddingBatch(vectors, tokens=tokens)

    def count_tokens(self, text: str) -> int:
        """The model's own count, special tokens included."""
        return len(self._tokenizer.encode(text)) + 2

    def close(self) -> None:
        """Frees the weights. The next embed() loads them again."""
        self.__dict__.pop("_network", None)

    @cached_property
    def _blas(self) -> Any:
        """One BLAS thread for these small products: on a busy machine, several take five times as long."""
        from threadpoolctl import ThreadpoolController

        return ThreadpoolController().select(user_api="blas")

    @cached_property
    def _tokenizer(self) -> Any:
        from sentencepiece import SentencePieceProcessor

        return SentencePieceProcessor(model_file=str(weights.locate(self.name) / "sp.model"))

    @cached_property
    def _network(self) -> _Network:
        """From .npz without pickles. It is hashed first, as damage would go unnoticed."""
        folder = weights.locate(self.name)
        if not weights.is_right(self.name, "weights.npz"):
            command = weights.pull_command(self.name)
            raise Unavailable(lack("weights_damaged", folder=str(folder), command=command))
        with np.load(folder / "weights.npz", allow_pickle=False) as arrays:
            return _Network({name: arrays[name] for name in arrays.files})


class _Network:
    """The encoder's arrays and its forward pass."""

    def __init__(self, arrays: Mapping[str, Any]) -> None:
        self.arrays = arrays
        self.words = np.stack([arrays[f"q{table + 1}"] for table in range(_TABLES)])
        self.epsilon = float(arrays["eps"])
        branches = list(_WINDOWS)
        self.project = np.concatenate([arrays[f"proj{n}"] for n in branches], axis=1)
        self.project_bias, self.gain, self.shift = (
            np.concatenate([arrays[f"{part}{n}"] for n in branches]) for part in ("proj_b", "ln_g", "ln_b")
        )

    def vector(self, ids: Sequence[int]) -> Floats:
        """Token ids in, a unit vector out."""
        arrays = self.arrays
        words = self._words(np.asarray(ids))
        projected = self._norm(words @ self.project + self.project_bias, self.gain, self.shift)
        parts = [words]
        for branch, (n, window) in zip(np.split(projected, len(_WINDOWS), axis=1), _WINDOWS.items(), strict=True):
            once = _convolve(branch, window, arrays[f"w1_{n}"], arrays[f"b1_{n}"])
            parts.append(_convolve(once, window, arrays[f"w2_{n}"], arrays[f"b2_{n}"]))
        features = self._norm(np.concatenate(parts, axis=1), arrays["ln_g"], arrays["ln_b"])
        # Sums before the product instead of after: equal, for a fraction of the work.
        total = features.sum(axis=0) @ arrays["cnn_W"] + len(ids) * arrays["cnn_b"]
        mean = total / np.float32(np.sqrt(len(ids)))
        first = _relu(_relu(mean @ arrays["d0"]) @ arrays["d1"] + mean @ arrays["p1"])
        last = np.tanh(_relu(first @ arrays["d2"]) @ arrays["d3"] + first @ arrays["p3"])
        return np.asarray(last / np.linalg.norm(last), dtype=np.float32)

    def _words(self, ids: npt.NDArray[np.int64]) -> Floats:
        """The rows of the table, stored in 64 steps between each part's minimum and maximum."""
        row, table = np.divmod(ids, _TABLES)
        steps = self.words[table, row].astype(np.float32)
        return np.asarray(steps * self.arrays["scale"][table, None] + self.arrays["lo"][table, None], dtype=np.float32)

    def _norm(self, values: Floats, gain: Floats, shift: Floats) -> Floats:
        centred = values - values.mean(axis=1, keepdims=True)
        spread = np.sqrt((centred**2).mean(axis=1, keepdims=True) + self.epsilon)
        return np.asarray(centred / spread * gain + shift, dtype=np.float32)


def _convolve(tokens: Floats, window: tuple[int, int], weight: Floats, bias: Floats) -> Floats:
    """Each token with its neighbours (zeros beyond the ends) through one layer, plus the input."""
    padded = np.pad(tokens, (window, (0, 0)))
    columns = [padded[start : start + len(tokens)] for start in range(sum(window) + 1)]
    return _relu(np.concatenate(columns, axis=1) @ weight + bias) + tokens


def _relu(values: Floats) -> Floats:
    return np.maximum(values, np.float32(0))
