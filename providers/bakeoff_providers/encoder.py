"""Small transformer models on onnxruntime, with neither torch nor a hub: what minilm and granite share."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, get_args

import msgspec
import numpy as np

from bakeoff_providers import weights
from bakeoff_providers.base import EmbeddingBatch, ModelCard, Provider, Role, TokenBatch, Vectors
from bakeoff_providers.bert_onnx import GRAPH_VERSION, Array, Bert, Precision, write_graph
from bakeoff_providers.errors import InputError, Unavailable, lack
from bakeoff_providers.files import replacing
from bakeoff_providers.needs import Needs
from bakeoff_providers.options import Transport
from bakeoff_providers.registry import nearest
from bakeoff_providers.shared_options import OneModel

# Padded tokens per pass: enough for efficient matrix products, few enough for the caches.
_PASS_TOKENS = 512


class Encoder(Provider):
    """A model of 384 dimensions that truncates long texts and counts them. Both roles share one space.

    `threads` is the number of parallel passes (default: one per core), each single-threaded. Vectors are bit-identical
    for any number. `compute` is "fp32" or "int8", which is about twice as fast with slightly different vectors.
    """

    local: ClassVar[bool] = True
    own_tokens: ClassVar[bool] = True
    distributions = ("onnxruntime",)
    context: ClassVar[int]
    shape: ClassVar[Bert]
    weights_file: ClassVar[str]

    def __init__(
        self,
        *,
        model: OneModel = None,
        threads: Annotated[
            int | None, "parallel passes; default: one per core", msgspec.Meta(ge=1, le=1024), Transport
        ] = None,
        compute: Annotated[Precision, "int8 = about twice as fast, slightly different vectors"] = "fp32",
    ) -> None:
        if model not in (None, self.default_model):
            raise InputError(f"unknown model {model!r}", place=self.name, remedy=f"known: {self.default_model}")
        if threads is not None and threads < 1:
            raise InputError(f"threads is {threads}", place=self.name, remedy="give 1 or more, or leave it out")
        if compute not in (known := get_args(Precision)):
            raise InputError(f"unknown compute {compute!r}", place=self.name, remedy=nearest(str(compute), list(known)))
        self.threads = threads or _cores()
        self.compute: Precision = compute
        self.card = ModelCard(name=self.default_model, dimensions=384, context=self.context, batch_items=256)

    @classmethod
    def needs(cls, **options: Any) -> Needs:
        """The libraries and the weights."""
        return replace(super().needs(**options), weights=cls.name)

    @abstractmethod
    def _read_weights(self, path: Path) -> Mapping[str, Array]:
        """The tensors of the weights file, with BERT's names."""

    @abstractmethod
    def _read_tokenizer(self, folder: Path) -> Any:
        """The model's own tokenizer. Padding and truncation are set here."""

    def identity(self, role: Role) -> dict[str, str | int | float | bool | None]:
        """The weights' hash is the revision."""
        return {**super().identity(role), "revision": self._sha[:12], "precision": self.compute}

    def embed(self, texts: Sequence[str], role: Role) -> EmbeddingBatch:  # noqa: ARG002 - one space for both roles
        """Groups texts of similar length to avoid padding, and restores their order."""
        encodings = self._tokenizer.encode_batch(list(texts))
        ids = [encoding.ids for encoding in encodings]
        vectors: Vectors = np.empty((len(ids), self.card.dimensions or 0), dtype=np.float32)
        for rows, answer in self._run_all(self._session, ids):
            vectors[rows] = answer
        truncated = sum(bool(encoding.overflowing) for encoding in encodings)
        return EmbeddingBatch(vectors, tokens=sum(map(len, ids)), truncated=truncated)

    def embed_tokens(self, texts: Sequence[str], role: Role) -> TokenBatch:  # noqa: ARG002 - one space for both roles
        """The last layer's unit vector per token, without the special tokens.

        Neither model was trained for this: there are no query or document markers, queries are not padded with masks,
        and punctuation stays. A text without tokens keeps its special ones.
        """
        encodings = self._tokenizer.encode_batch(list(texts))
        ids = [encoding.ids for encoding in encodings]
        vectors: list[Vectors] = [np.empty(0, dtype=np.float32)] * len(ids)
        for rows, answer in self._run_all(self._token_session, ids):
            for row, tokens in zip(rows, answer, strict=True):
                real = ~np.array(encodings[row].special_tokens_mask, dtype=bool)
                vectors[row] = tokens[: len(real)][real if real.any() else slice(None)].copy()
        truncated = sum(bool(encoding.overflowing) for encoding in encodings)
        return TokenBatch(vectors, tokens=sum(map(len, ids)), truncated=truncated)

    def _run_all(self, session: Any, ids: Sequence[Sequence[int]]) -> Iterator[tuple[list[int], Vectors]]:
        """Runs passes in parallel. The session is loaded before the threads need it."""
        passes = list(_passes([len(row) for row in ids]))
        side_by_side = self._pool.map if len(passes) > 1 else map
        answers = side_by_side(lambda rows: _run(session, [ids[row] for row in rows]), passes)
        return zip(passes, answers, strict=True)

    def count_tokens(self, text: str) -> int:
        """The model's own count, special tokens included, also for texts that are too long."""
        encoding = self._tokenizer.encode(text)
        ends = int(sum(encoding.special_tokens_mask))
        return int(len(encoding.ids) + sum(len(rest.ids) - ends for rest in encoding.overflowing))

    def close(self) -> None:
        """Frees the weights and threads. The next embed() loads them again."""
        self.__dict__.pop("_session", None)
        self.__dict__.pop("_token_session", None)
        if pool := self.__dict__.pop("_pool", None):
            pool.shutdown()

    @property
    def _sha(self) -> str:
        return weights.find_weights(self.name).files[self.weights_file]

    @cached_property
    def _tokenizer(self) -> Any:
        tokenizer = self._read_tokenizer(weights.locate(self.name))
        tokenizer.no_padding()
        tokenizer.enable_truncation(self.context)
        return tokenizer

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self.threads, thread_name_prefix=self.name)

    @cached_property
    def _session(self) -> Any:
        return self._load_session(self.shape)

    @cached_property
    def _token_session(self) -> Any:
        return self._load_session(msgspec.structs.replace(self.shape, pooling="none"))

    def _load_session(self, shape: Bert) -> Any:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        # Above the basic level it would restore the slow fusion that the graph avoids.
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
        return onnxruntime.InferenceSession(str(self._graph(shape)), options, providers=["CPUExecutionProvider"])

    def _graph(self, shape: Bert) -> Path:
        """The graph beside the weights, written once. Its name identifies the graph and the weights."""
        folder = weights.locate(self.name)
        kind = ("" if self.compute == "fp32" else f"-{self.compute}") + "-tokens" * (shape.pooling == "none")
        graph = folder / f"graph-v{GRAPH_VERSION}-{self._sha[:12]}{kind}.onnx"
        if not graph.is_file():
            if not weights.is_right(self.name, self.weights_file):
                command = weights.pull_command(self.name)
                raise Unavailable(lack("weights_damaged", folder=str(folder), command=command))
            with replacing(graph) as part:
                computed = msgspec.structs.replace(shape, precision=self.compute)
                write_graph(self._read_weights(folder / self.weights_file), part, computed)
        return graph


def _cores() -> int:
    """The cores this process may use, which may be fewer in a container."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _run(session: Any, ids: Sequence[Sequence[int]]) -> Vectors:
    padded = np.zeros((len(ids), max(map(len, ids))), dtype=np.int32)
    mask = np.zeros_like(padded)
    for row, tokens in enumerate(ids):
        padded[row, : len(tokens)] = tokens
        mask[row, : len(tokens)] = 1
    vectors: Vectors = session.run(["vectors"], {"ids": padded, "mask": mask})[0]
    return vectors


def _passes(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Rows by falling length, cut so that no pass holds more padded tokens than it should."""
    rows: list[int] = []
    for row in sorted(range(len(lengths)), key=lambda row: -lengths[row]):
        if rows and (len(rows) + 1) * lengths[rows[0]] > _PASS_TOKENS:
            yield rows
            rows = []
        rows.append(row)
    if rows:
        yield rows
