"""A BERT of one layer with random weights, eight dimensions and a context of twelve tokens: no hub, no download."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

CONTEXT = 12


def write_tiny_model(folder: Path, words: list[str], prompts: dict[str, str] | None = None) -> Path:
    """The folder of a sentence-transformers model (the mean of its tokens) that knows these words."""
    transformers: Any = import_module("transformers")
    library: Any = import_module("sentence_transformers")
    import_module("torch").manual_seed(7)
    parts, whole = folder / "parts", folder / "whole"
    parts.mkdir(parents=True)
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
    (parts / "vocab.txt").write_text("\n".join(vocabulary), encoding="utf-8")
    tokenizer = transformers.BertTokenizerFast(str(parts / "vocab.txt"), model_max_length=CONTEXT)
    config = transformers.BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=32,
    )
    transformers.BertModel(config).save_pretrained(parts)
    tokenizer.save_pretrained(parts)
    model = library.SentenceTransformer(str(parts), device="cpu", prompts=prompts)
    model.max_seq_length = CONTEXT
    model.save(str(whole))
    return whole
