"""A small cross-encoder trained on SciFact's train split from MiniLM's weights, and what it adds behind BM25.

    python bench/cross_encoder.py train DATA FOLDER [--minutes 10]      needs torch and transformers
    python bench/cross_encoder.py measure DATA FOLDER [--depth 20]      needs bakeoff[minilm]

`train` writes model.onnx and tokenizer.json, which `rerank = { provider = "cross_encoder", model = "FOLDER" }` reads.
Each query is shown one relevant document and three of BM25's best others, and learns to tell the first from the rest.
`measure` runs the test split: BM25 alone, and its candidates reranked.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bakeoff.core.task import Task
from bakeoff.evaluation.measures import Measure
from bakeoff.lineup.lineup import Lineup
from bakeoff.report.words import failure_words
from bakeoff.running.runner import Outcome, run
from bakeoff.systems.base import System
from bakeoff.systems.lexical import Lexical
from bakeoff.systems.reranked import Rerank, RerankedRow
from bakeoff_providers import weights

NDCG = Measure.parse("ndcg@10")
CONTEXT, OTHERS, QUERIES, EPOCHS, RATE, SEED = 128, 3, 4, 4, 1e-4, 7
POOL = 30  # of BM25's candidates, from which the others are drawn


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=["train", "measure"])
    parser.add_argument("data", type=Path, help="SciFact in BEIR's layout, or the folder above it")
    parser.add_argument("folder", type=Path, help="the cross-encoder")
    parser.add_argument("--minutes", type=float, default=10.0, help="of training at most")
    parser.add_argument("--threads", type=int, help="of torch")
    parser.add_argument("--depth", type=int, default=20, help="candidates for the second stage")
    options = parser.parse_args()
    data = options.data if (options.data / "corpus.jsonl").is_file() else options.data / "scifact"
    if options.what == "train":
        train(data.resolve(), options.folder, options.minutes, options.threads)
    else:
        measure(data.resolve(), options.folder.resolve(), options.depth)
    return 0


def answers(data: Path, split: str, depth: int, *second: System) -> Outcome:
    return run(
        Lineup(
            name=f"scifact-{split}",
            task={"name": "scifact", "format": "beir", "folder": str(data), "split": split},
            contenders=(Lexical("bm25", ranker="bm25"), *second),
            measures=(NDCG,),
            primary=NDCG,
            depth=depth,
            rounds=1,
            seed=42,
            folder=data,
        )
    )


def groups(task: Task, candidates: dict[str, tuple[str, ...]], rng: random.Random) -> Iterator[tuple[str, list[str]]]:
    """Each relevant document with others that BM25 takes for it, in a random order of queries."""
    texts = {document.id: document.whole() for document in task.documents}
    pairs = [
        (query, document)
        for query in task.queries
        for document, grade in task.judgments[query.id].items()
        if grade >= task.rel
    ]
    rng.shuffle(pairs)
    for query, relevant in pairs:
        pool = [name for name in candidates[query.id] if task.judgments[query.id].get(name, 0) < task.rel]
        others = rng.sample(pool[:POOL], OTHERS)
        yield query.text, [texts[name] for name in (relevant, *others)]


def train(data: Path, folder: Path, minutes: float, threads: int | None) -> None:
    torch, rng = import_module("torch"), random.Random(SEED)
    torch.manual_seed(SEED)
    if threads:
        torch.set_num_threads(threads)
    outcome = answers(data, "train", POOL + 10)
    candidates = {query: ranking.ids for query, ranking in outcome.ran[0].rankings.items()}
    task, model, tokenizer = outcome.task, starting_model(), tokenizer_of()
    examples = [example for _ in range(EPOCHS) for example in groups(task, candidates, rng)]
    batches = [examples[start : start + QUERIES] for start in range(0, len(examples), QUERIES)]
    model.bert.embeddings.requires_grad_(False)  # half of the weights, which 809 queries can't improve
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=RATE, weight_decay=0.01)
    print(f"{len(task.queries)} queries, {len(examples) // EPOCHS} relevant documents, up to {len(batches)} steps of "
          f"{QUERIES} queries with {1 + OTHERS} documents each, {CONTEXT} tokens", flush=True)  # fmt: skip
    start, total, losses = time.monotonic(), len(batches), []
    model.train()
    for step, batch in enumerate(batches):
        passed = (time.monotonic() - start) / 60
        done = max(step / total, passed / minutes)
        if done >= 1:
            break
        for group in optimizer.param_groups:  # up over the first twentieth, then down to nothing at the end
            group["lr"] = RATE * min(1.0, done / 0.05 + 0.05) * (1 - done)
        pairs = [(query, document) for query, documents in batch for document in documents]
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = model(**inputs(torch, tokenizer, pairs)).logits.float().reshape(len(batch), 1 + OTHERS)
        loss = torch.nn.functional.cross_entropy(logits, torch.zeros(len(batch), dtype=torch.long))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        losses.append(float(loss.detach()))
        if step % 20 == 0:
            recent = losses[-20:]
            print(f"step {step:4d}  {passed:5.1f} min  loss {sum(recent) / len(recent):.3f}", flush=True)
    print(f"{len(losses)} steps in {(time.monotonic() - start) / 60:.1f} minutes", flush=True)
    write(torch, model, tokenizer, folder)


def starting_model() -> Any:
    """MiniLM as a classifier of pairs: its weights, and a head that has seen nothing."""
    transformers, safetensors = import_module("transformers"), import_module("safetensors.torch")
    config = transformers.BertConfig(
        vocab_size=30522, hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536,
        max_position_embeddings=512, num_labels=1,
    )  # fmt: skip
    model = transformers.BertForSequenceClassification(config)
    tensors = safetensors.load_file(str(weights.locate("minilm") / "model.safetensors"))
    missing, _ = model.bert.load_state_dict(tensors, strict=False)
    assert not [name for name in missing if not name.startswith("embeddings.position_ids")], missing
    return model


def tokenizer_of() -> Any:
    tokenizer = import_module("tokenizers").Tokenizer.from_file(str(weights.locate("minilm") / "tokenizer.json"))
    tokenizer.enable_truncation(CONTEXT)
    tokenizer.enable_padding()
    return tokenizer


def inputs(torch: Any, tokenizer: Any, pairs: list[tuple[str, str]]) -> dict[str, Any]:
    encodings = tokenizer.encode_batch(pairs)
    return {
        "input_ids": torch.tensor([encoding.ids for encoding in encodings]),
        "attention_mask": torch.tensor([encoding.attention_mask for encoding in encodings]),
        "token_type_ids": torch.tensor([encoding.type_ids for encoding in encodings]),
    }


def write(torch: Any, model: Any, tokenizer: Any, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    model.eval()
    example = inputs(torch, tokenizer, [("a claim", "a text"), ("another claim", "a longer text than that")])
    axes = {name: {0: "pairs", 1: "tokens"} for name in example} | {"logits": {0: "pairs"}}
    torch.onnx.export(
        model, tuple(example.values()), str(folder / "model.onnx"), input_names=list(example),
        output_names=["logits"], dynamic_axes=axes, opset_version=17, dynamo=False,
    )  # fmt: skip
    shutil.copy(weights.locate("minilm") / "tokenizer.json", folder / "tokenizer.json")
    print(f"wrote {folder}", flush=True)


def measure(data: Path, folder: Path, depth: int) -> None:
    options = {"context": CONTEXT}
    second = RerankedRow("bm25+cross", rerank=Rerank("bm25", "cross_encoder", str(folder), depth, options))
    outcome = answers(data, "test", 100, second)
    for row in outcome.not_run:
        print(f"{row.contender.label}: {failure_words(row.failure)}")
    print(json.dumps(outcome.extras.figures.get("second_stage", {}), indent=2))


if __name__ == "__main__":
    sys.exit(main())
