"""Three hundred drawn documents and twelve queries, as a BEIR folder."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np


def beir_task(folder: Path) -> None:
    """Writes it."""
    random = np.random.default_rng(0)
    words = [f"w{number}" for number in range(200)]
    lines = [
        json.dumps({"_id": f"d{n}", "title": f"t{n % 90}", "text": " ".join(random.choice(words, 5 + n % 20))})
        for n in range(300)
    ]
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text("\n".join(lines))
    asked = [json.dumps({"_id": f"q{n}", "text": " ".join(random.choice(words, 4))}) for n in range(12)]
    (folder / "queries.jsonl").write_text("\n".join(asked))
    grades = [f"q{n % 12}\td{int(document)}\t1" for n, document in enumerate(random.permutation(300)[:120])]
    (folder / "qrels" / "test.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *grades]))
