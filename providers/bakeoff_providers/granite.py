"""granite-embedding-30m-english: small, and trained for retrieval."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from bakeoff_providers import granite_pack
from bakeoff_providers.bert_onnx import Array, Bert
from bakeoff_providers.encoder import Encoder


class Granite(Encoder):
    """granite-embedding-30m-english: English, 384 dimensions, 30 million weights; cut at 512 tokens.

    The first token's vector at length 1, without prompts, as the model's card has it.

    The published weights here are 8-bit integers in groups of 64; they are computed with in float32.
    """

    name: ClassVar[str] = "granite"
    default_model: ClassVar[str] = "granite-embedding-30m-english"
    extra: ClassVar[str | None] = "granite"
    modules: ClassVar[tuple[str, ...]] = ("onnxruntime", "tokenizers", "onnx")
    context: ClassVar[int] = 512
    shape: ClassVar[Bert] = Bert(layers=6, heads=12, pooling="first")
    weights_file: ClassVar[str] = "granite-embedding-30m-english-int8.hmsemb"

    def _read_weights(self, path: Path) -> Mapping[str, Array]:
        return granite_pack.read_tensors(path)

    def _read_tokenizer(self, folder: Path) -> Any:
        from tokenizers import Tokenizer

        return Tokenizer.from_str(granite_pack.read_tokenizer(folder / self.weights_file))
