"""MiniLM's published weights as a GGUF file, for servers of llama.cpp: only names and layout change."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bakeoff_providers import weights
from bakeoff_providers.minilm import MiniLM
from safetensors.numpy import load_file

EMBEDDINGS = {
    "word_embeddings": "token_embd",
    "position_embeddings": "position_embd",
    "token_type_embeddings": "token_types",
    "LayerNorm": "token_embd_norm",
}
LAYER = {
    "attention.self.query": "attn_q",
    "attention.self.key": "attn_k",
    "attention.self.value": "attn_v",
    "attention.output.dense": "attn_output",
    "attention.output.LayerNorm": "attn_output_norm",
    "intermediate.dense": "ffn_up",
    "output.dense": "ffn_down",
    "output.LayerNorm": "layer_output_norm",
}


def write(target: Path) -> Path:
    """In float32, so that what differs afterwards is the server's arithmetic alone."""
    import gguf

    folder = weights.locate("minilm")
    writer = gguf.GGUFWriter(str(target), "bert")
    writer.add_context_length(512)
    writer.add_embedding_length(384)
    writer.add_feed_forward_length(1536)
    writer.add_block_count(MiniLM.shape.layers)
    writer.add_head_count(MiniLM.shape.heads)
    writer.add_layer_norm_eps(MiniLM.shape.epsilon)
    writer.add_causal_attention(False)
    writer.add_pooling_type(gguf.PoolingType.MEAN)
    _add_vocabulary(writer, json.loads((folder / "tokenizer.json").read_text(encoding="utf-8")))
    tensors = load_file(folder / "model.safetensors")
    for name, theirs in _names():
        writer.add_tensor(theirs, tensors[name])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return target


def _add_vocabulary(writer: Any, tokenizer: dict[str, Any]) -> None:
    """llama.cpp marks the pieces that begin a word, where BERT marks those that go on with one."""
    from gguf import TokenType

    ids: dict[str, int] = tokenizer["model"]["vocab"]
    special = {token["content"] for token in tokenizer["added_tokens"]}
    pieces = sorted(ids, key=ids.__getitem__)
    marked = [
        piece if piece in special else piece[2:] if piece.startswith("##") else f"\u2581{piece}" for piece in pieces
    ]
    writer.add_tokenizer_model("bert")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(marked)
    writer.add_token_types([TokenType.CONTROL if piece in special else TokenType.NORMAL for piece in pieces])
    writer.add_token_type_count(2)
    writer.add_bos_token_id(ids["[CLS]"])
    writer.add_eos_token_id(ids["[SEP]"])
    writer.add_sep_token_id(ids["[SEP]"])
    writer.add_pad_token_id(ids["[PAD]"])
    writer.add_unk_token_id(ids["[UNK]"])
    writer.add_mask_token_id(ids["[MASK]"])


def _names() -> Iterator[tuple[str, str]]:
    for name, theirs in EMBEDDINGS.items():
        for kind in ("weight", "bias") if name == "LayerNorm" else ("weight",):
            yield f"embeddings.{name}.{kind}", f"{theirs}.{kind}"
    for layer in range(MiniLM.shape.layers):
        for name, theirs in LAYER.items():
            for kind in ("weight", "bias"):
                yield f"encoder.layer.{layer}.{name}.{kind}", f"blk.{layer}.{theirs}.{kind}"
