"""all-MiniLM-L6-v2: the model everyone starts from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from bakeoff_providers.bert_onnx import Array, Bert
from bakeoff_providers.encoder import Encoder


class MiniLM(Encoder):
    """all-MiniLM-L6-v2: English, 384 dimensions, 22 million weights; texts are cut at 256 tokens. Mean pooling."""

    name: ClassVar[str] = "minilm"
    default_model: ClassVar[str] = "all-MiniLM-L6-v2"
    extra: ClassVar[str | None] = "minilm"
    modules: ClassVar[tuple[str, ...]] = ("onnxruntime", "tokenizers", "safetensors", "onnx")
    context: ClassVar[int] = 256
    shape: ClassVar[Bert] = Bert(layers=6, heads=12)
    weights_file: ClassVar[str] = "model.safetensors"

    def _read_weights(self, path: Path) -> Mapping[str, Array]:
        from safetensors.numpy import load_file

        tensors: Mapping[str, Array] = load_file(path)
        return tensors

    def _read_tokenizer(self, folder: Path) -> Any:
        """The file sets 128 tokens with padding; the published model takes 256."""
        from tokenizers import Tokenizer

        return Tokenizer.from_file(str(folder / "tokenizer.json"))
