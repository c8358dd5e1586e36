"""`validate` finds what a run would meet, and spends nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from bakeoff.core.facts import Fact
from bakeoff.core.paths import lineup_file, lineup_names, task_names
from bakeoff.lineup.lineup import Lineup
from bakeoff.report.words import failure_words
from bakeoff.running.runner import run
from bakeoff.running.settings import Settings
from bakeoff.running.validation import Checked, check_rows, check_task
from bakeoff.tasks.kinds import load_kind
from bakeoff_providers.errors import InputError

from tests.cli.test_wrong_arguments import bakeoff as bakeoff_within
from tests.errors import refuses, says
from tests.facts import ids
from tests.native_task import native_files, write_files, write_lineup
from tests.terminal import bakeoff


def _checked(folder: Path, contenders: str, task: str = "") -> list[Checked]:
    lineup = Lineup.read(write_lineup(folder, native_files(), task=task, contenders=contenders))
    kind, notices = load_kind(lineup.task, lineup.folder), list[Fact]()
    check_task(kind.task(), kind, notices.append)
    return list(check_rows(lineup, kind.task()))


WRONG = [
    ('provider = "fake"\nstore = { name = "faiss", options = { index = "HNSWW" } }', "'HNSWW'"),
    ('provider = "fake"\nstore = { name = "faiss", options = { index = "IVF4096,Flat" } }', "IVF4096"),
    ('provider = "fake"\nstore = "faiss"\ndimensions = 9999', "9999"),
    ('ranker = "bm25"\noptions = { language = "klingon" }', "'klingon'"),
    ('answers = "none.trec"', "none.trec"),
    ('provider = "precomputed"\nstore = "faiss"\noptions = { path = "none.npy" }', "none.npy"),
    ('provider = "file:mine.py:embde"\nstore = "faiss"', "'embed'"),
    ('provider = "file:mine.py:Model"\nstore = "faiss"\nprompt = { name = "clusterin" }', "'clustering'"),
    ('provider = "file:mine.py:embed"\nstore = "faiss"\nprompt = { query = { name = "q" } }', "'q'"),
    ('retriever = "file:mine.py:serach"', "'search'"),
    ('retriever = "file:broken.py:search"', "SyntaxError"),
    ('provider = "fake"\nstore = { name = "chroma", existing = "nowhere" }', "nowhere"),
]


@pytest.mark.parametrize(("contender", "said"), WRONG, ids=[said for _, said in WRONG])
def test_what_a_row_has_wrong_is_found_without_running(tmp_path: Path, contender: str, said: str) -> None:
    (tmp_path / "mine.py").write_text(
        "def embed(texts): 1 / 0\ndef search(text, k): 1 / 0\n"
        "class Model:\n    prompts = {'clustering': 'cluster: '}\n    def embed(self, texts): 1 / 0\n"
    )
    (tmp_path / "broken.py").write_text("def search(:\n")
    good, bad = _checked(tmp_path, f'[[contender]]\nranker = "bm25"\nlabel = "words"\n[[contender]]\n{contender}\n')
    assert good == Checked("words")
    assert bad.wrong
    assert bad.failure is not None
    says(failure_words(bad.failure), said)


@pytest.mark.parametrize(("option", "said"), [("k1 = -1", "contender 1, k1"), ("b = 1.5", "1.5")])
def test_a_number_out_of_its_range_stops_the_line_up(tmp_path: Path, option: str, said: str) -> None:
    with refuses(InputError, said, file="own.toml"):
        _checked(tmp_path, f'[[contender]]\nranker = "bm25"\noptions = {{ {option} }}\n')


def test_functions_are_imported_and_not_called(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def embed(texts): 1 / 0\ndef search(text, k): 1 / 0\n")
    rows = _checked(
        tmp_path,
        '[[contender]]\nprovider = "file:mine.py:embed"\nstore = "faiss"\n'
        '[[contender]]\nretriever = "file:mine.py:search"\n',
    )
    assert rows == [Checked("embed+faiss"), Checked("search")]


def test_a_server_that_is_not_there_is_not_called_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", "http://127.0.0.1:9")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    ollama, openai = _checked(
        tmp_path,
        '[[contender]]\nprovider = "ollama"\nstore = "faiss"\n[[contender]]\nprovider = "openai"\nstore = "faiss"\n',
    )
    assert ollama.failure is not None
    assert openai.failure is not None
    assert [ids(row.lacks) for row in (ollama.failure, openai.failure)] == [["server_stopped"], ["key_unset"]]
    says(failure_words(ollama.failure), "127.0.0.1")
    says(failure_words(openai.failure), "OPENAI_API_KEY")


@pytest.mark.parametrize("key", ["", "AIza0123456789"])
def test_a_chat_model_is_wrong_with_or_without_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", key)
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)
    text = '[[contender]]\nprovider = "gemini"\nmodel = "gemini-1.5-flash"\nstore = "faiss"\n'
    (row,) = _checked(tmp_path, text)
    assert row.wrong
    assert row.failure is not None
    assert "gemini-1.5-flash" in row.failure.text
    assert "gemini-embedding-001" in f"{row.failure.text} {row.failure.remedy}"
    words = '[[contender]]\nranker = "bm25"\n'
    outcome = run(Lineup.read(write_lineup(tmp_path, native_files(), contenders=text + words)), Settings(cache=None))
    assert [row.contender.label for row in outcome.ran] == ["bm25"]
    assert "gemini-embedding-001" in failure_words(outcome.not_run[0].failure)


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ('targets = { "zz" = 0.5 }', "'zz'"),
        ("rel = 5", "5"),
    ],
)
def test_a_task_that_cannot_be_scored_is_refused(tmp_path: Path, task: str, said: str) -> None:
    with refuses(InputError, said):
        _checked(tmp_path, '[[contender]]\nranker = "bm25"\n', task)


def test_the_command_says_which_rows_and_ends_with_2(tmp_path: Path) -> None:
    write_lineup(tmp_path, native_files(), contenders=f'[[contender]]\n{WRONG[0][0]}\n[[contender]]\nranker = "bm25"\n')
    done = bakeoff("validate", "own.toml", cwd=tmp_path)
    assert done.returncode == 2
    says(done.stdout, "own.toml", "1 of 2 rows")
    assert "fake+faiss: wrong: " in done.stdout
    assert "bm25: ready" in done.stdout


@pytest.mark.parametrize("name", ["films", "neighbours", "scholarships", "trips", "wikipedia-paraphrased"])
def test_a_name_of_a_line_up_and_of_a_task_is_the_line_ups_as_for_run(tmp_path: Path, name: str) -> None:
    assert name in set(lineup_names()) & set(task_names())
    code, out, err = bakeoff_within(tmp_path, "validate", name, "--no-health")
    assert code == 0, out + err
    assert f"lineups/{name}.toml: valid" in out
    assert f"task {name}: " in out
    labels = [contender.label for contender in Lineup.read(lineup_file(Path(name))).contenders]
    assert all(f"  {label}: " in out for label in labels)


def _two_tasks(folder: Path, second: str) -> None:
    task = '{ format = "native", articles = "articles.json", queries = "queries.json", ground_truth = "truth.json"'
    write_files(folder, native_files())
    (folder / "two.toml").write_text(
        f'measures = ["ndcg@10"]\n[[tasks]]\nname = "first"\ntask = {task} }}\n'
        f'[[tasks]]\nname = "second"\ntask = {task}{second} }}\n[[contender]]\nranker = "bm25"\n'
    )


def test_every_task_of_a_line_up_is_checked(tmp_path: Path) -> None:
    _two_tasks(tmp_path, ', about = "All about   mines."')
    code, out, err = bakeoff_within(tmp_path, "validate", "two.toml")
    assert code == 0, out + err
    assert out.count("two.toml: valid") == 1
    assert out.index("task first: ") < out.index("task second: ") < out.index("All about mines.")
    assert out.count("  bm25: ready") == 2
    says(out, "100.0%")
    _two_tasks(tmp_path, ", rel = 5")
    code, _, err = bakeoff_within(tmp_path, "validate", "two.toml")
    assert code == 2
    says(err, "two.toml", "'second'")


def test_the_health_of_a_task_says_of_which_pair_it_speaks(tmp_path: Path) -> None:
    _, out, _ = bakeoff_within(tmp_path, "validate", "wikipedia")
    said = " ".join(out.split())
    assert re.search(r"gaps below about 0\.\d+ ndcg@10 .*bm25 and fake\+faiss", said)


def test_a_built_in_line_up_is_known_by_its_name(tmp_path: Path) -> None:
    done = bakeoff("validate", "stores", "--no-health", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "stores.toml: valid" in done.stdout
