"""BERT as an ONNX graph, written directly from the weights, without torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Precision = Literal["fp32", "int8"]

# Part of the file's name. Raise it when the graph changes, so that old files are not reused.
GRAPH_VERSION = 1
_CONTRIB = "com.microsoft"


class Bert(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes that the weights don't contain."""

    layers: int
    heads: int
    epsilon: float = 1e-12
    pooling: Literal["mean", "first", "none"] = "mean"
    precision: Precision = "fp32"


def write_graph(weights: Mapping[str, Array], target: Path, shape: Bert) -> None:
    """Token ids and mask in, pooled unit vectors out; without pooling, one per token."""
    import onnx

    onnx.save(_Writer(weights, shape).model(), str(target))


class _Writer:
    """Builds one graph. The fused operators are exact (GELU by erf) and only save memory passes."""

    def __init__(self, weights: Mapping[str, Array], shape: Bert) -> None:
        self.weights, self.shape = weights, shape
        self.nodes: list[Any] = []
        self.constants: dict[str, Any] = {}

    def model(self) -> Any:
        from onnx import TensorProto, helper

        hidden = self._embeddings()
        for layer in range(self.shape.layers):
            hidden = self._layer(f"encoder.layer.{layer}.", hidden)
        self._pool(hidden)
        size = int(self.weights["embeddings.LayerNorm.weight"].shape[0])
        integers, floats = TensorProto.INT32, TensorProto.FLOAT
        tokens = ["tokens"] if self.shape.pooling == "none" else []
        graph = helper.make_graph(
            self.nodes,
            "bert",
            [
                helper.make_tensor_value_info("ids", integers, ["texts", "tokens"]),
                helper.make_tensor_value_info("mask", integers, ["texts", "tokens"]),
            ],
            [helper.make_tensor_value_info("vectors", floats, ["texts", *tokens, size])],
            list(self.constants.values()),
        )
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid(_CONTRIB, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)

    def _embeddings(self) -> str:
        """All texts are of segment 0, so its row is added to every position."""
        prefix = "embeddings."
        words = self._weight(f"{prefix}word_embeddings.weight")
        segment = self.weights[f"{prefix}token_type_embeddings.weight"][0]
        position = self._constant("positions", self.weights[f"{prefix}position_embeddings.weight"] + segment)
        inputs = ["ids", "", words, position, "", *self._norm(f"{prefix}LayerNorm.")]
        how = {"domain": _CONTRIB, "epsilon": self.shape.epsilon}
        return self._node("EmbedLayerNormalization", inputs, "embedded", others=["lengths"], **how)

    def _layer(self, prefix: str, hidden: str) -> str:
        attention = self._attention(f"{prefix}attention.self.", hidden)
        dense = f"{prefix}attention.output."
        projected = self._matmul(f"{dense}dense.weight", attention)
        attended = self._skip_norm(dense, projected, hidden)
        wide = self._matmul(f"{prefix}intermediate.dense.weight", attended)
        bias = self._weight(f"{prefix}intermediate.dense.bias")
        active = self._node("BiasGelu", [wide, bias], f"{prefix}active", domain=_CONTRIB)
        dense = f"{prefix}output."
        return self._skip_norm(dense, self._matmul(f"{dense}dense.weight", active), attended)

    def _attention(self, prefix: str, hidden: str) -> str:
        """One product for query, key and value side by side, as the fused operator expects."""
        parts = ("query", "key", "value")
        weight = np.concatenate([self.weights[f"{prefix}{part}.weight"].T for part in parts], axis=1)
        bias = np.concatenate([self.weights[f"{prefix}{part}.bias"] for part in parts])
        if self.shape.precision == "int8":
            return self._int8_attention(prefix, hidden, weight, bias)
        inputs = [hidden, self._constant(f"{prefix}weight", weight), self._constant(f"{prefix}bias", bias), "mask"]
        return self._node("Attention", inputs, f"{prefix}out", domain=_CONTRIB, num_heads=self.shape.heads)

    def _int8_attention(self, prefix: str, hidden: str, weight: Array, bias: Array) -> str:
        """A separate product, because the fused operator's int8 form uses one scale for the whole batch."""
        product = self._int8_product(f"{prefix}product", weight, hidden)
        parts = [f"{prefix}part{n}" for n in range(3)]
        sizes = self._constant("thirds", np.array([weight.shape[0]] * 3, dtype=np.int64))
        self._node("Split", [product, sizes], parts[0], others=parts[1:], axis=-1)
        inputs = [*parts, self._constant(f"{prefix}bias", bias), "mask"]
        return self._node("MultiHeadAttention", inputs, f"{prefix}out", domain=_CONTRIB, num_heads=self.shape.heads)

    def _int8_product(self, name: str, weight: Array, inner: str) -> str:
        """Int8 product: one scale per column of the weight, and one per token, computed on the fly.

        A scale per token makes vectors independent of the batch. onnxruntime's dynamic quantisation has one scale per
        batch. Tokens are unsigned because the signed product is far slower.
        """
        scale = np.abs(weight).max(axis=0) / 127
        steps = self._constant(f"{name}.steps", np.round(weight / scale).astype(np.int8))
        one = self._constant("one", np.array(1, dtype=np.float32))
        zero = self._constant("zero", np.array(128, dtype=np.uint8))
        size = self._node("ReduceMax", [self._node("Abs", [inner], f"{name}.abs")], f"{name}.size", axes=[-1])
        unit = self._node("Mul", [size, self._constant("step", np.array(1 / 127, dtype=np.float32))], f"{name}.unit")
        scaled = self._node("Div", [inner, unit], f"{name}.scaled")
        rounded = self._node("QuantizeLinear", [scaled, one, zero], f"{name}.rounded")
        inputs = [rounded, steps, one, self._constant(f"{name}.scale", scale.astype(np.float32)), zero]
        whole = self._node("MatMulIntegerToFloat", inputs, f"{name}.whole", domain=_CONTRIB)
        return self._node("Mul", [whole, unit], name)

    def _skip_norm(self, prefix: str, inner: str, skip: str) -> str:
        """Three plain nodes: onnxruntime's fused SkipLayerNormalization takes three times as long on a CPU."""
        biased = self._node("Add", [inner, self._weight(f"{prefix}dense.bias")], f"{prefix}biased")
        summed = self._node("Add", [biased, skip], f"{prefix}summed")
        inputs = [summed, *self._norm(f"{prefix}LayerNorm.")]
        return self._node("LayerNormalization", inputs, f"{prefix}normed", axis=-1, epsilon=self.shape.epsilon)

    def _pool(self, hidden: str) -> None:
        poolings = {"mean": self._sum, "first": self._first}
        pool = poolings.get(self.shape.pooling)
        self._node("LpNormalization", [pool(hidden) if pool else hidden], "vectors", axis=-1, p=2)

    def _first(self, hidden: str) -> str:
        return self._node("Gather", [hidden, self._constant("first", np.array(0, dtype=np.int64))], "pooled", axis=1)

    def _sum(self, hidden: str) -> str:
        """The sum over real tokens. The mean's divisor cancels out at unit length."""
        from onnx import TensorProto

        texts_axis, columns_axis = (self._constant(f"axis{n}", np.array([n], dtype=np.int64)) for n in (1, 2))
        weights = self._node("Cast", ["mask"], "weights", to=TensorProto.FLOAT)
        columns = self._node("Unsqueeze", [weights, columns_axis], "columns")
        kept = self._node("Mul", [hidden, columns], "kept")
        return self._node("ReduceSum", [kept, texts_axis], "total", keepdims=0)

    def _norm(self, prefix: str) -> list[str]:
        return [self._weight(f"{prefix}weight"), self._weight(f"{prefix}bias")]

    def _matmul(self, weight: str, inner: str) -> str:
        name, values = f"{weight}.product", self.weights[weight].T
        if self.shape.precision == "int8":
            return self._int8_product(name, values, inner)
        return self._node("MatMul", [inner, self._constant(weight, values)], name)

    def _weight(self, name: str) -> str:
        return self._constant(name, self.weights[name])

    def _constant(self, name: str, value: Array) -> str:
        from onnx import numpy_helper

        self.constants[name] = numpy_helper.from_array(np.asarray(value, order="C"), name)
        return name

    def _node(self, kind: str, inputs: list[str], name: str, others: Sequence[str] = (), **how: Any) -> str:
        """Adds a node and returns its first output, which is named after the node."""
        from onnx import helper

        self.nodes.append(helper.make_node(kind, inputs, [name, *others], name=name, **how))
        return name
