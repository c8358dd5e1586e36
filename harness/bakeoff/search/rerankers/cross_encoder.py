"""A cross-encoder as an ONNX graph in a folder: query and document go through the model together, here and for free."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from bakeoff_providers.errors import InputError

from bakeoff.search.rerankers.base import Reranked, Reranker

GRAPHS = ("model.onnx", "onnx/model.onnx")


class CrossEncoder(Reranker):
    """`model` is a folder with `model.onnx` (or `onnx/model.onnx`) and `tokenizer.json`, as `optimum` exports them."""

    name: ClassVar[str] = "cross_encoder"
    default_model: ClassVar[str] = ""
    local: ClassVar[bool] = True
    extra: ClassVar[str | None] = "minilm"
    modules: ClassVar[tuple[str, ...]] = ("onnxruntime", "tokenizers")
    distributions: ClassVar[tuple[str, ...]] = ("onnxruntime",)
    paths: ClassVar[tuple[str, ...]] = ("model",)

    def __init__(self, *, model: str | None = None, context: int = 512, batch: int = 32) -> None:
        if not model:
            raise InputError("cross_encoder wants a folder", place="model", remedy='model = "./ms-marco-MiniLM-L6"')
        if context < 8 or batch < 1:
            raise InputError("context must be at least 8 and batch at least 1", place="options")
        self._folder, self._context, self._batch = Path(model).expanduser(), context, batch
        graphs = [self._folder / name for name in GRAPHS if (self._folder / name).is_file()]
        if not graphs or not (self._folder / "tokenizer.json").is_file():
            raise InputError(
                "has no model.onnx and tokenizer.json", file=self._folder, remedy="export it: optimum-cli export onnx"
            )
        self._graph = graphs[0]

    @property
    def model(self) -> str:
        """The folder's name."""
        return self._folder.name

    def identity(self) -> dict[str, str | int | float | bool | None] | None:
        """The graph's content: what is in a folder may change."""
        with self._graph.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()[:32]
        return {"reranker": self.name, "model": self.model, "graph": digest, "context": self._context}

    def rank(self, query: str, documents: Sequence[str]) -> Reranked:
        """The graph's one logit for each pair; of several classes the last counts."""
        scores: list[float] = []
        for start in range(0, len(documents), self._batch):
            pairs = [(query, document) for document in documents[start : start + self._batch]]
            encodings = self._tokenizer.encode_batch(pairs)
            columns = {
                "input_ids": [encoding.ids for encoding in encodings],
                "attention_mask": [encoding.attention_mask for encoding in encodings],
                "token_type_ids": [encoding.type_ids for encoding in encodings],
            }
            wanted = [node.name for node in self._session.get_inputs()]
            inputs = {name: np.array(columns[name], dtype=np.int64) for name in wanted}
            logits = np.asarray(self._session.run(None, inputs)[0])
            scores += [float(value) for value in logits.reshape(len(pairs), -1)[:, -1]]
        return Reranked(scores)

    def close(self) -> None:
        """Frees the weights."""
        self.__dict__.pop("_session", None)

    @cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(self._folder / "tokenizer.json"))
        tokenizer.enable_truncation(self._context)
        tokenizer.enable_padding()
        return tokenizer

    @cached_property
    def _session(self) -> Any:
        import onnxruntime

        return onnxruntime.InferenceSession(str(self._graph), providers=["CPUExecutionProvider"])
