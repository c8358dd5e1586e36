"""Cross-encoders as ONNX graphs, from a folder or the hub."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from bakeoff_providers.errors import InputError, Unavailable
from bakeoff_providers.weights import first_file, is_hub_name

from bakeoff.search.rerankers import Reranked, Reranker

GRAPHS = ("onnx/model.onnx", "model.onnx")
TOKENIZER = "tokenizer.json"


class CrossEncoder(Reranker):
    """`model` is a folder with `model.onnx` (or `onnx/model.onnx`) and `tokenizer.json`, as `optimum` exports them.

    A name on the hub is downloaded on first use: only these files, into the hub's own cache.
    """

    name: ClassVar[str] = "cross_encoder"
    default_model: ClassVar[str] = ""
    local: ClassVar[bool] = True
    extra: ClassVar[str | None] = "minilm"
    modules: ClassVar[tuple[str, ...]] = ("onnxruntime", "tokenizers")
    distributions: ClassVar[tuple[str, ...]] = ("onnxruntime",)
    paths: ClassVar[tuple[str, ...]] = ("model",)

    def __init__(
        self,
        *,
        model: Annotated[str | None, "a folder with model.onnx and tokenizer.json, or a name on the hub"] = None,
        revision: Annotated[str | None, "branch, tag or commit on the hub"] = None,
        context: Annotated[int, "maximum tokens of query and document together"] = 512,
        batch: Annotated[int, "pairs per batch"] = 32,
    ) -> None:
        if not model:
            raise InputError(
                "cross_encoder needs a folder or a name on the hub",
                place="model",
                remedy='model = "cross-encoder/ms-marco-MiniLM-L6-v2"',
            )
        if context < 8 or batch < 1:
            raise InputError("context must be at least 8 and batch at least 1", place="options")
        self._name, self._revision, self._context, self._batch = model, revision, context, batch
        self._files: tuple[Path, Path] | None = None  # the graph and the tokenizer
        folder = Path(model).expanduser()
        if is_hub_name(model) and not folder.exists():
            return
        graphs = [folder / name for name in GRAPHS if (folder / name).is_file()]
        if not graphs or not (folder / TOKENIZER).is_file():
            raise InputError(
                "has no model.onnx and tokenizer.json", file=folder, remedy="export it: optimum-cli export onnx"
            )
        if revision is not None:
            raise InputError("a folder has no revision", place="options", remedy="remove it")
        self._files = graphs[0], folder / TOKENIZER

    @property
    def model(self) -> str:
        """The folder's name, or the one on the hub."""
        return self._name if self._files is None or is_hub_name(self._name) else Path(self._name).name

    def load(self, *, offline: bool = False) -> None:
        """Fetch the files and load the weights."""
        if self._files is None:
            self._files = self._fetch(offline)
        _ = self._tokenizer, self._session

    def _fetch(self, offline: bool) -> tuple[Path, Path]:
        graph, tokenizer = (
            first_file(self._name, names, revision=self._revision, offline=offline) for names in (GRAPHS, (TOKENIZER,))
        )
        if graph is None or tokenizer is None:
            raise Unavailable(
                f"{self._name} has no {'ONNX graph' if graph is None else TOKENIZER} on the hub; "
                "export it into a folder: optimum-cli export onnx"
            )
        with contextlib.suppress(Unavailable):  # large graphs have their weights beside them
            first_file(self._name, [_beside(graph)], revision=self._revision, offline=offline)
        return graph, tokenizer

    def _paths(self) -> tuple[Path, Path]:
        if self._files is None:
            self._files = self._fetch(offline=False)
        return self._files

    def identity(self) -> dict[str, str | int | float | bool | None]:
        """The hash of the graph, since a folder's content may change."""
        with self._paths()[0].open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()[:32]
        return {"reranker": self.name, "model": self.model, "graph": digest, "context": self._context}

    def rank(self, query: str, documents: Sequence[str]) -> Reranked:
        """One logit per pair: the last class if there are several."""
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
        """Free the weights."""
        self.__dict__.pop("_session", None)

    @cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(self._paths()[1]))
        tokenizer.enable_truncation(self._context)
        tokenizer.enable_padding()
        return tokenizer

    @cached_property
    def _session(self) -> Any:
        import onnxruntime

        return onnxruntime.InferenceSession(str(self._paths()[0]), providers=["CPUExecutionProvider"])


def _beside(graph: Path) -> str:
    """The file of a graph's external weights, by the exporters' convention."""
    parts = [graph.parent.name, f"{graph.name}_data"] if graph.parent.name == "onnx" else [f"{graph.name}_data"]
    return "/".join(parts)
