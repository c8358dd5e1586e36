"""MiniLM's published weights as folders that transformers reads: as it is, and with one number for a pair of texts.

The second is no reranker that anybody would use: its head is drawn. It has the form of one.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from bakeoff_providers import weights
from safetensors.numpy import load_file, save_file

CONFIG: dict[str, Any] = {
    "model_type": "bert",
    "architectures": ["BertModel"],
    "hidden_size": 384,
    "num_hidden_layers": 6,
    "num_attention_heads": 12,
    "intermediate_size": 1536,
    "vocab_size": 30522,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
    "hidden_act": "gelu",
    "layer_norm_eps": 1e-12,
    "pad_token_id": 0,
}
TOKENIZER = {
    "tokenizer_class": "BertTokenizerFast",
    "model_max_length": 256,
    "do_lower_case": True,
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "mask_token": "[MASK]",
}


def write_encoder(folder: Path) -> Path:
    """With the pooling of sentence-transformers beside it."""
    _write(folder, CONFIG)
    shutil.copy(weights.locate("minilm") / "model.safetensors", folder / "model.safetensors")
    parts = [("0", "", "Transformer"), ("1", "1_Pooling", "Pooling"), ("2", "2_Normalize", "Normalize")]
    modules = [
        {"idx": int(number), "name": number, "path": path, "type": f"sentence_transformers.models.{kind}"}
        for number, path, kind in parts
    ]
    _dump(folder / "modules.json", modules)
    _dump(folder / "sentence_bert_config.json", {"max_seq_length": 256, "do_lower_case": False})
    pooling = {"word_embedding_dimension": 384, "pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}
    _dump(folder / "1_Pooling" / "config.json", pooling)
    (folder / "2_Normalize").mkdir()
    return folder


def write_pair_scorer(folder: Path) -> Path:
    """A head of drawn numbers on the first token."""
    one = {"id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}}
    _write(folder, {**CONFIG, **one, "architectures": ["BertForSequenceClassification"]})
    tensors = {
        f"bert.{name}": value for name, value in load_file(weights.locate("minilm") / "model.safetensors").items()
    }
    rng = np.random.default_rng(3)
    tensors["bert.pooler.dense.weight"] = np.eye(384, dtype=np.float32)
    tensors["bert.pooler.dense.bias"] = np.zeros(384, dtype=np.float32)
    tensors["classifier.weight"] = rng.standard_normal((1, 384)).astype(np.float32)
    tensors["classifier.bias"] = np.zeros(1, dtype=np.float32)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def _write(folder: Path, config: dict[str, Any]) -> None:
    folder.mkdir(parents=True)
    _dump(folder / "config.json", config)
    _dump(folder / "tokenizer_config.json", TOKENIZER)
    shutil.copy(weights.locate("minilm") / "tokenizer.json", folder / "tokenizer.json")


def _dump(file: Path, content: Any) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(content), encoding="utf-8")
