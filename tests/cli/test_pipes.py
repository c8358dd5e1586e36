"""`-` reads standard input where a command reads a file; other special files are refused."""

from __future__ import annotations

import gzip
import io
import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bakeoff.core.files import read_json

from tests.terminal import bakeoff, bakeoff_process

ROWS = [{"title": "Copper", "text": "copper, tin"}, {"title": "Boats", "text": "sailing lake"}]
QRELS = b"q1 0 a 1\nq2 0 b 1\n"
RUN = b"q1 Q0 a 1 2.0 x\nq2 Q0 c 1 2.0 x\nq2 Q0 b 2 1.0 x\n"


def _parquet() -> bytes:
    written = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(ROWS), written)
    return written.getvalue()


TABLES = {
    "csv": b'title,text\nCopper,"copper, tin"\nBoats,sailing lake\n',
    "tsv": b"title\ttext\nCopper\tcopper, tin\nBoats\tsailing lake\n",
    "jsonl": "".join(json.dumps(row) + "\n" for row in ROWS).encode(),
    "parquet": _parquet(),
}
TABLES["gzip"] = gzip.compress(TABLES["csv"])


@pytest.mark.parametrize("kind", TABLES)
def test_a_table_comes_through_a_pipe(kind: str, tmp_path: Path) -> None:
    done = bakeoff_process("corpus", "import", "-", cwd=tmp_path, piped=TABLES[kind], TMPDIR=str(tmp_path))
    assert done.returncode == 0, done.stderr
    articles = read_json(tmp_path / "articles.json", dict[str, object])["articles"]
    assert isinstance(articles, list)
    assert [(one["title"], one["summary"]) for one in articles] == [(row["title"], row["text"]) for row in ROWS]
    assert not list(tmp_path.glob("bakeoff-*"))


def test_a_run_comes_through_a_pipe(tmp_path: Path) -> None:
    """The relevant document is first for q1 and second for q2."""
    (tmp_path / "own.qrels").write_bytes(QRELS)
    done = bakeoff_process("score", "own.qrels", "-", "-m", "mrr", "-f", "csv", cwd=tmp_path, piped=RUN)
    assert done.returncode == 0, done.stderr
    assert "0.75" in done.stdout
    twice = bakeoff_process("score", "own.qrels", "-", "-", cwd=tmp_path, piped=RUN)
    assert twice.returncode == 2


@pytest.mark.parametrize(
    "command",
    [["corpus", "import"], ["select"], ["score", "own.qrels"], ["queries", "import"], ["log", "import"]],
    ids=" ".join,
)
@pytest.mark.parametrize("special", ["fifo.csv", "/dev/zero"])
def test_what_may_never_end_is_refused(command: list[str], special: str, tmp_path: Path) -> None:
    (tmp_path / "own.qrels").write_bytes(QRELS)
    (tmp_path / "articles.json").write_text('{"articles": []}')
    os.mkfifo(tmp_path / "fifo.csv")
    told = bakeoff(*command, special, *(["--out", "new"] if command[0] != "score" else []), cwd=tmp_path)
    assert told.returncode == 2
    assert special in told.stderr
