"""granite-embedding-30m-english: small, and trained for retrieval."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import numpy as np
import numpy.typing as npt

from bakeoff_providers.bert_onnx import Array, Bert
from bakeoff_providers.encoder import Encoder
from bakeoff_providers.errors import InputError


class Granite(Encoder):
    """granite-embedding-30m-english: English, 384 dimensions, 30 million weights; cut at 512 tokens.

    The first token's vector at unit length, without prompts, as on the model card.

    These published weights are 8-bit integers in groups of 64. Computation is in float32.
    """

    name: ClassVar[str] = "granite"
    default_model: ClassVar[str] = "granite-embedding-30m-english"
    extra: ClassVar[str | None] = "granite"
    modules: ClassVar[tuple[str, ...]] = ("onnxruntime", "tokenizers", "onnx")
    context: ClassVar[int] = 512
    shape: ClassVar[Bert] = Bert(layers=6, heads=12, pooling="first")
    weights_file: ClassVar[str] = "granite-embedding-30m-english-int8.hmsemb"

    def _read_weights(self, path: Path) -> Mapping[str, Array]:
        return read_tensors(path)

    def _read_tokenizer(self, folder: Path) -> Any:
        from tokenizers import Tokenizer

        return Tokenizer.from_str(read_tokenizer(folder / self.weights_file))


Floats = npt.NDArray[np.float32]

_MAGIC = b"HMSEMB01"
_START = len(_MAGIC) + 8
# BERT's names for the parts of a layer. Query, key and value are one tensor in the pack.
_LAYER = {
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "f1": "intermediate.dense",
    "f2": "output.dense",
    "fln": "output.LayerNorm",
}
_QKV = ("query", "key", "value")
_KINDS = {"w": "weight", "b": "bias"}


class _Tensor(msgspec.Struct, frozen=True):
    name: str
    dtype: str
    shape: tuple[int, ...]
    length: int = msgspec.field(name="len")
    group: int


class _Arch(msgspec.Struct, frozen=True):
    position_offset: int


class _Header(msgspec.Struct, frozen=True):
    arch: _Arch
    tokenizer_len: int
    tensors: tuple[_Tensor, ...]


def read_tokenizer(path: Path) -> str:
    """The tokenizer.json between the header and the tensors."""
    header, start = _header(path)
    with path.open("rb") as stream:
        stream.seek(start)
        return stream.read(header.tokenizer_len).decode("utf-8")


def read_tensors(path: Path) -> dict[str, Floats]:
    """All tensors in float32 with BERT's names. Row 0 of the positions is the first token's."""
    header, start = _header(path)
    data = path.read_bytes()
    at = start + header.tokenizer_len
    if at + sum(tensor.length for tensor in header.tensors) != len(data):
        raise _damage_error(path, "its parts don't add up to the file")
    tensors: dict[str, Floats] = {}
    for tensor in header.tensors:
        tensors.update(_rename(tensor.name, _values(tensor, data[at : at + tensor.length], path)))
        at += tensor.length
    positions = "embeddings.position_embeddings.weight"
    tensors[positions] = tensors[positions][header.arch.position_offset :]
    return tensors


def _header(path: Path) -> tuple[_Header, int]:
    """The header, and the offset after it."""
    with path.open("rb") as stream:
        lead = stream.read(_START)
        if len(lead) < _START or not lead.startswith(_MAGIC):
            raise _damage_error(path, f"does not begin with {_MAGIC.decode()}")
        size = int.from_bytes(lead[len(_MAGIC) :], "little")
        try:
            return msgspec.json.decode(stream.read(size), type=_Header), _START + size
        except (msgspec.DecodeError, OverflowError) as error:
            raise _damage_error(path, f"its header can't be read ({error})") from None


def _values(tensor: _Tensor, data: bytes, path: Path) -> Floats:
    """Plain floats, or bytes followed by one scale per group within a row."""
    count = int(np.prod(tensor.shape))
    if tensor.dtype == "f32" and tensor.length == 4 * count:
        return np.frombuffer(data, "<f4").reshape(tensor.shape)
    groups = count // tensor.group if tensor.group else 0
    if tensor.dtype != "i8" or not groups or tensor.length != count + 4 * groups:
        raise _damage_error(path, f"{tensor.name} has an unknown layout")
    steps = np.frombuffer(data, np.int8, count).reshape(groups, tensor.group).astype(np.float32)
    scales = np.frombuffer(data, "<f4", groups, offset=count)
    return np.asarray(steps * scales[:, None], dtype=np.float32).reshape(tensor.shape)


def _rename(name: str, values: Floats) -> Iterator[tuple[str, Floats]]:
    """`l0.ao.w` → `encoder.layer.0.attention.output.dense.weight`."""
    if name.endswith("_emb"):
        kind = {"word": "word", "pos": "position", "type": "token_type"}[name.removesuffix("_emb")]
        yield f"embeddings.{kind}_embeddings.weight", values
        return
    *where, kind = name.split(".")
    if where == ["emb_ln"]:
        yield f"embeddings.LayerNorm.{_KINDS[kind]}", values
        return
    layer = f"encoder.layer.{where[0].removeprefix('l')}."
    if where[1] == "qkv":
        for part, rows in zip(_QKV, np.split(values, len(_QKV)), strict=True):
            yield f"{layer}attention.self.{part}.{_KINDS[kind]}", rows
    else:
        yield f"{layer}{_LAYER[where[1]]}.{_KINDS[kind]}", values


def _damage_error(path: Path, problem: str) -> InputError:
    return InputError(problem, file=path, remedy="bakeoff models pull granite fetches the pack again")
