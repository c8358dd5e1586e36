"""What the documentation shows must work when it is typed in."""

from __future__ import annotations

import contextlib
import io
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bakeoff import load, save
from bakeoff.core.paths import lineup_file, task_description
from bakeoff.extensions.testsets.annotate import Server
from bakeoff.lineup.lineup import Lineup
from bakeoff.running.runner import run
from bakeoff.tasks.load import load_task
from bakeoff_providers.base import Role
from bakeoff_providers.fake import Fake

from tests.cli.test_testsets import say
from tests.providers.real_weights import require

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
_NAMED_FILE = re.compile(r"^`([\w./]+)`:\n\n```\w*\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)
_PYTHON = re.compile(r"^```python\n(.*?)^```(?:\n\n```text\n(.*?)^```)?", flags=re.MULTILINE | re.DOTALL)


def write_named_files(text: str, folder: Path) -> list[str]:
    """The files that a page shows, each after its name and a colon."""
    files = _NAMED_FILE.findall(text)
    for name, content in files:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content, encoding="utf-8")
    return [name for name, _ in files]


def test_the_example_of_an_own_task_works(tmp_path: Path) -> None:
    text = (DOCS / "reference" / "tasks.md").read_text(encoding="utf-8")
    names = write_named_files(text, tmp_path)
    own = [f"lamps/{name}" for name in ("articles.json", "queries.json", "ground_truth.json", "task.toml")]
    own.append("lamps/evaluate_queries.json")
    assert names == ["documents.csv", "queries.jsonl", "judgments.csv", "shop.toml", *own]
    lineup = Lineup.read(tmp_path / "shop.toml")
    assert f"fingerprint {load_task(lineup.task, tmp_path).fingerprint()}\n" in text
    outcome = run(lineup)
    assert outcome.task.judgments == {"q1": {"17": 3, "18": 1, "19": 0}, "q2": {"19": 3, "17": 1}}
    assert outcome.scores["bm25"]["p@1"] == [1.0, 1.0]  # "write letters" is in none: all follow by id, 17 first


def test_the_example_of_a_native_task_works_without_category_and_with_one_place_for_grades(tmp_path: Path) -> None:
    write_named_files((DOCS / "reference" / "tasks.md").read_text(encoding="utf-8"), tmp_path)
    task = load_task("lamps", tmp_path)
    assert task.judgments == {"q1": {"17": 3, "oak-19": 0}, "q2": {"17": 1, "oak-19": 3}}
    assert [(query.category, dict(query.where)) for query in task.queries] == [("", {}), ("", {"colour": "oak"})]
    assert task.documents[1].metadata["colour"] == "oak"
    lineup = tmp_path / "lamps.toml"
    lineup.write_text('task = "lamps"\nmeasures = ["p@1", "ndcg@10"]\n[[contender]]\nranker = "bm25"\n')
    outcome = run(Lineup.read(lineup))
    assert outcome.scores["bm25"]["p@1"] == [1.0, 1.0]
    summary = load(save(outcome, tmp_path)).summary
    assert summary.task.categories == []
    assert all(row.categories == {} for row in summary.rows)  # no table by category


def test_the_example_of_grades_in_the_query_file_works(tmp_path: Path) -> None:
    write_named_files((DOCS / "reference" / "tasks.md").read_text(encoding="utf-8"), tmp_path)
    task = load_task({"format": "native", "articles": "articles.json", "queries": "evaluate_queries.json",
                      "ground_truth": "none.json"}, tmp_path / "lamps")  # fmt: skip
    assert task.judgments == {"q1": {"17": 3, "oak-19": 0}}
    assert task.notes == []


def _run_on_an_existing_index(text: str, folder: Path) -> None:
    """The page's own entry over a Chroma folder as its reader would have one; only the paid provider is exchanged."""
    import chromadb

    lineup = Lineup.read(folder / "own.toml")
    documents = load_task(lineup.task, folder).documents
    client = chromadb.PersistentClient(str(folder / "chroma_db"))
    collection = client.create_collection("docs", configuration={"hnsw": {"space": "cosine"}})
    vectors = Fake(dimensions=32).embed([document.whole() for document in documents], Role.DOCUMENT).vectors
    pages = [{"page_id": document.id} for document in documents]
    collection.add(ids=[f"entry{at}" for at in range(len(documents))], embeddings=vectors, metadatas=pages)
    client.close()
    (entry,) = re.findall(
        r"^```toml\n(\[\[contender\]\]\nprovider = \"openai\".*?)^```", text, re.MULTILINE | re.DOTALL
    )
    paid = 'provider = "openai"\nmodel = "text-embedding-3-small"\n'
    assert paid in entry
    ours = entry.replace(paid, 'provider = "fake"\noptions = { dimensions = 32 }\n')
    head = (folder / "own.toml").read_text(encoding="utf-8").partition("[[contender]]")[0]
    (folder / "existing.toml").write_text(head + ours, encoding="utf-8")
    outcome = run(Lineup.read(folder / "existing.toml"))
    assert [row.contender.row_type for row in outcome.ran] == ["existing"]
    assert {len(ranking) for ranking in outcome.ran[0].rankings.values()} == {len(documents)}


def test_the_page_is_announced_as_the_guide_shows_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A real page, ended at once as by Ctrl-C; its port and its token are another each time."""
    shutil.copytree(ROOT / "tests" / "docs_corpora" / "centre", tmp_path, dirs_exist_ok=True)
    for command in (["corpus", "import", "help"], ["queries", "import", "asked.csv"], ["init", "task"]):
        say(tmp_path, *command)

    def end(_server: Server) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Server, "serve", end)
    printed = say(tmp_path, "grade", "task", "--lineup", "bakeoff.toml", "--who", "ada", "--no-open")
    (shown,) = re.findall(
        r"^    (\d+ of .*?)\n    (.*Ctrl-C.*?)\n    (.*bakeoff grade export.*?)\n",
        (DOCS / "tutorial" / "your-documents.md").read_text(),
        re.M,
    )
    masked = re.sub(r":\d+/[\w-]+/", ":PORT/TOKEN/", "\n".join(shown))
    assert masked in re.sub(r":\d+/[\w-]+/", ":PORT/TOKEN/", printed)


def test_the_figures_of_languages_are_those_of_a_run() -> None:
    """English from the stored result, the others from the line-up that the page names."""
    text = " ".join((DOCS / "concepts" / "kinds.md").read_text(encoding="utf-8").split())
    (shown,) = re.findall(r"NDCG@10 in English \(`bakeoff run`\), German and Spanish: (.*?)\. The", text)
    english = {row.label: row.measures["ndcg@10"].mean for row in load(ROOT / "results" / "reference").summary.ran}
    models = ["use", "granite", "minilm"]
    for model in models:
        require(model)
    outcome = run(replace(Lineup.read(lineup_file(Path("multilingual"))).narrow(models), rounds=1))
    languages = [query.category for query in outcome.task.queries]
    said = []
    for model in models:
        scores = outcome.scores[f"{model}+faiss"]["ndcg@10"]
        found = [english[f"{model}+faiss"]]
        for language in ("German", "Spanish"):
            found.append(float(np.mean(np.array(scores)[[asked == language for asked in languages]])))
        said.append(f"{model} {', '.join(f'{figure:.3f}' for figure in found)}")
    assert "; ".join(said) == shown


def test_the_rows_of_ones_own_run(tmp_path: Path) -> None:
    write_named_files((DOCS / "reference" / "tasks.md").read_text(encoding="utf-8"), tmp_path)
    own, chunks, stages, gateway = (
        (DOCS / "guides" / f"{name}.md").read_text(encoding="utf-8")
        for name in ("own-functions", "chunk-sizes", "hybrid-and-rerank", "gateway")
    )
    for name in write_named_files(own + chunks + stages, tmp_path):
        if name.endswith(".toml"):
            outcome = run(Lineup.read(tmp_path / name))
            assert outcome.not_run == []
    _run_on_an_existing_index(own, tmp_path)
    (endpoint,) = re.findall(r"^```toml\n(\[\[contender\]\]\nlabel = .*?)^```", gateway, flags=re.MULTILINE | re.DOTALL)
    (tmp_path / "endpoint.toml").write_text(f'task = "wikipedia"\n{endpoint}')
    assert not Lineup.read(tmp_path / "endpoint.toml").contenders[0].local


@pytest.mark.parametrize("page", ["docs/reference/python.md", "docs/five-documents/index.md", "README.md"])
def test_python_examples_print_what_the_page_shows(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All blocks of a page in one session, in a folder with the files that the page names."""
    text = (ROOT / page).read_text(encoding="utf-8")
    write_named_files(text, tmp_path)
    if not (tmp_path / "bakeoff.toml").exists():
        (tmp_path / "bakeoff.toml").write_bytes((ROOT / "bakeoff.toml").read_bytes())
    monkeypatch.chdir(tmp_path)
    blocks = _PYTHON.findall(text)
    assert blocks
    session: dict[str, Any] = {"__name__": "__main__"}
    for code, shown in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, page, "exec"), session)
        assert printed.getvalue() == shown


@pytest.mark.parametrize("folder", ["corpora", "queries"])
def test_each_folder_of_data_is_described_with_the_line_up_that_runs_it(folder: str) -> None:
    text = (ROOT / folder / "README.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1:-1] for line in text.splitlines() if line.startswith("| `")]
    there = {path.name for path in (ROOT / folder).iterdir() if path.is_dir()}
    assert {row[0].strip(" `/") for row in rows} == there
    for row in rows:
        for name in re.findall(r"`bakeoff run ?([\w-]*)`", "|".join(row)):
            task = Lineup.read(lineup_file(Path(name)) if name else ROOT / "bakeoff.toml").task
            described = task_description(str(task), Path())
            corpus = re.search(r'"\.\./\.\./corpora/([\w-]+)', described.read_text(encoding="utf-8"))
            assert row[0].strip(" `/") == (corpus[1] if folder == "corpora" and corpus else described.parent.name)
