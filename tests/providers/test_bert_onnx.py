"""The graph against BERT written out in numpy, on weights small enough to be random."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from bakeoff_providers.bert_onnx import Bert, write_graph
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Weights = dict[str, NDArray[np.float32]]

SIZE, WIDE, WORDS, POSITIONS, HEADS, LAYERS = 16, 40, 30, 12, 4, 2
TEXTS = [[3, 7, 7, 29, 1], [5], [2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24]]


def random_weights() -> Weights:
    rng = np.random.default_rng(42)
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (WORDS, SIZE),
        "embeddings.position_embeddings.weight": (POSITIONS, SIZE),
        "embeddings.token_type_embeddings.weight": (2, SIZE),
        "embeddings.LayerNorm.weight": (SIZE,),
        "embeddings.LayerNorm.bias": (SIZE,),
    }
    for layer in range(LAYERS):
        prefix = f"encoder.layer.{layer}."
        for part in ("query", "key", "value"):
            shapes[f"{prefix}attention.self.{part}.weight"] = (SIZE, SIZE)
            shapes[f"{prefix}attention.self.{part}.bias"] = (SIZE,)
        shapes[f"{prefix}intermediate.dense.weight"] = (WIDE, SIZE)
        shapes[f"{prefix}intermediate.dense.bias"] = (WIDE,)
        for part, inner in (("attention.output", SIZE), ("output", WIDE)):
            shapes[f"{prefix}{part}.dense.weight"] = (SIZE, inner)
            for name in ("dense.bias", "LayerNorm.weight", "LayerNorm.bias"):
                shapes[f"{prefix}{part}.{name}"] = (SIZE,)
    return {name: rng.normal(scale=0.7, size=shape).astype(np.float32) for name, shape in shapes.items()}


def by_hand(weights: Weights, ids: list[int], pooling: str) -> Floats:
    """One text, no padding, in double precision, as the BERT paper and its GELU by erf have it."""

    def dense(name: str, x: Floats) -> Floats:
        return x @ weights[f"{name}.weight"].T.astype(np.float64) + weights[f"{name}.bias"]

    def norm(name: str, x: Floats) -> Floats:
        centred = x - x.mean(axis=-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-12)
        return np.asarray(scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"])

    tables = [weights[f"embeddings.{kind}_embeddings.weight"] for kind in ("word", "position", "token_type")]
    x = norm("embeddings.LayerNorm", tables[0][ids].astype(np.float64) + tables[1][: len(ids)] + tables[2][0])
    for layer in range(LAYERS):
        prefix = f"encoder.layer.{layer}"
        query, key, value = (dense(f"{prefix}.attention.self.{part}", x) for part in ("query", "key", "value"))
        heads = []
        for head in range(HEADS):
            mine = slice(head * SIZE // HEADS, (head + 1) * SIZE // HEADS)
            likeness = np.exp(query[:, mine] @ key[:, mine].T / math.sqrt(SIZE / HEADS))
            heads.append(likeness / likeness.sum(axis=1, keepdims=True) @ value[:, mine])
        attended = dense(f"{prefix}.attention.output.dense", np.concatenate(heads, axis=1)) + x
        x = norm(f"{prefix}.attention.output.LayerNorm", attended)
        wide = dense(f"{prefix}.intermediate.dense", x)
        gelu = wide * (1 + np.vectorize(math.erf)(wide / math.sqrt(2))) / 2
        x = norm(f"{prefix}.output.LayerNorm", dense(f"{prefix}.output.dense", gelu) + x)
    pooled = x.mean(axis=0) if pooling == "mean" else x[0]
    return np.asarray(pooled / np.linalg.norm(pooled))


@pytest.fixture(scope="module")
def weights() -> Weights:
    return random_weights()


@pytest.fixture(scope="module", params=["mean", "first"])
def pooling(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(scope="module")
def session(weights: Weights, pooling: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    graph: Path = tmp_path_factory.mktemp("graph") / "graph.onnx"
    write_graph(weights, graph, Bert(layers=LAYERS, heads=HEADS, pooling=pooling))
    return onnxruntime.InferenceSession(str(graph), providers=["CPUExecutionProvider"])


def run(session: Any, texts: list[list[int]], pad: int) -> NDArray[np.float32]:
    ids = np.zeros((len(texts), pad), dtype=np.int32)
    mask = np.zeros_like(ids)
    for row, text in enumerate(texts):
        ids[row, : len(text)] = text
        mask[row, : len(text)] = 1
    return np.asarray(session.run(["vectors"], {"ids": ids, "mask": mask})[0])


def test_the_graph_is_bert(session: Any, weights: Weights, pooling: str) -> None:
    expected = [by_hand(weights, text, pooling) for text in TEXTS]
    np.testing.assert_allclose(run(session, TEXTS, 12), expected, atol=2e-6)


@pytest.mark.parametrize("text", TEXTS)
def test_padding_changes_nothing(session: Any, text: list[int]) -> None:
    np.testing.assert_allclose(run(session, [text], len(text)), run(session, [text], 12), atol=1e-6)


def test_int8_is_bert_but_for_rounding(weights: Weights, tmp_path: Path) -> None:
    write_graph(weights, tmp_path / "graph.onnx", Bert(layers=LAYERS, heads=HEADS, precision="int8"))
    session = onnxruntime.InferenceSession(str(tmp_path / "graph.onnx"), providers=["CPUExecutionProvider"])
    together = run(session, TEXTS, 12)
    expected = [by_hand(weights, text, "mean") for text in TEXTS]
    assert (together * np.array(expected)).sum(axis=1).min() > 0.99
    alone = np.concatenate([run(session, [text], len(text)) for text in TEXTS])
    np.testing.assert_allclose(together, alone, atol=1e-6)
