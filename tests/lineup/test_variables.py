"""`${NAME}` in a line-up: filled in everywhere, and where it is not set, only its row is lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bakeoff.core.task import Task
from bakeoff.lineup.lineup import Lineup, lineup_text
from bakeoff.report.words import failure_words
from bakeoff.running.runner import run
from bakeoff.running.settings import Settings
from bakeoff.systems.dense import Dense
from bakeoff_providers.errors import InputError

from tests.cli.test_wrong_arguments import bakeoff
from tests.errors import refuses, says
from tests.wire import PROXIES, WireServer

ROOT = Path(__file__).parents[2]
HEAD = 'task = "wikipedia"\nrounds = 1\n'
FAKE = '[[contender]]\nprovider = "fake"\nstore = "faiss"\n'
NAMES = ("MODEL", "LABEL", "STORE", "WHO", "SIZE", "HERE", "KIND", "INDEX", "PROMPT", "TASK", "SERVER", "ADDRESS")


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*PROXIES, *NAMES, "OPENAI_API_KEY", "OPENAI_BASE_URL", "ACME_TOKEN"):
        monkeypatch.delenv(name, raising=False)


def _read(folder: Path, text: str) -> Lineup:
    path = folder / "lineup.toml"
    path.write_text(text)
    return Lineup.read(path)


def test_every_text_is_filled_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = {
        "TASK": "wikipedia",
        "WHO": "openai",
        "MODEL": "text-embedding-3-small",
        "STORE": "faiss",
        "KIND": "int8",
        "LABEL": "mine",
        "INDEX": "HNSW32",
        "PROMPT": "query: ",
        "ADDRESS": "http://127.0.0.1:9/v1",
        "HERE": "search.example",
        "SIZE": "ndcg@10",
    }
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    lineup = _read(
        tmp_path,
        """
task = "${TASK}"
name = "run of ${LABEL}"
measures = ["${SIZE}", "mrr"]
[[contender]]
provider = "${WHO}"
model = "${MODEL}"
precision = "${KIND}"
prompt = { query = "${PROMPT}{text}", label = "asking" }
store = { name = "${STORE}", options = { index = "${INDEX}" } }
options = { base_url = "${ADDRESS}" }
[[contender]]
label = "${LABEL}-endpoint"
retriever = { url = "https://${HERE}/find", ids = "*", headers = { Authorization = "Bearer ${ACME_TOKEN}" } }
[[contender]]
ranker = "bm25"
[[fusion]]
of = ["bm25", "${LABEL}-endpoint"]
label = "${LABEL}-both"
""",
    )
    dense, endpoint, _, fused = lineup.contenders
    assert (lineup.task, lineup.name, str(lineup.measures[0])) == ("wikipedia", "run of mine", "ndcg@10")
    assert isinstance(dense, Dense)
    assert dense.identity == ("openai", "text-embedding-3-small", "faiss")
    assert dense.variant.precision == "int8"
    assert (endpoint.label, endpoint.to_dict()["retriever"]["url"]) == ("mine-endpoint", "https://search.example/find")
    assert (fused.label, fused.made_of) == ("mine-both", ("bm25", "mine-endpoint"))
    provider = dense.create(tmp_path)
    assert provider.card.query_prompt == "query: "
    assert getattr(provider, "base_url", "") == "http://127.0.0.1:9/v1"
    assert dense.fill_store_options() == {"index": "HNSW32"}
    kept = json.dumps(lineup.to_dict())  # what results hold names the variables of options, and reads back the same
    assert all(f"${{{name}}}" in kept for name in ("ADDRESS", "INDEX", "ACME_TOKEN"))
    again = _read(tmp_path, lineup_text(json.loads(kept)))
    assert [row.to_dict() for row in again.contenders] == [row.to_dict() for row in lineup.contenders]


@pytest.mark.parametrize(
    ("entry", "label"),
    [
        ('provider = "openai"\nmodel = "${MODEL}"\nstore = "faiss"', "MODEL+faiss"),
        ('provider = "${WHO}"\nlabel = "x"\nstore = "faiss"', "x"),
        ('provider = "fake"\nstore = "${STORE}"', "fake+STORE"),
        ('provider = "fake"\nstore = "faiss"\nprecision = "${KIND}"\nlabel = "x"', "x+faiss"),
        ('provider = "fake"\nlabel = "x"\nstore = { name = "faiss", options = { index = "${INDEX}" } }', "x+faiss"),
        ('provider = "openai"\nlabel = "x"\nstore = "faiss"\noptions = { base_url = "${ADDRESS}" }', "x+faiss"),
        ('provider = "ollama"\nlabel = "x"\nstore = "faiss"\nprompt = { query = "${PROMPT}" }', "x+faiss"),
        ('provider = "file:${HERE}/mine.py:embed"\nlabel = "x"\nstore = "faiss"', "x"),
        ('ranker = "${WHO}"\nlabel = "x"', "x"),
        ('ranker = "bm25"\nlabel = "x"\noptions = { language = "${WHO}" }', "x"),
        ('answers = "${HERE}/run.trec"\nlabel = "x"', "x"),
        ('retriever = "${SERVER}"', "SERVER"),
        ('label = "x"\nretriever = { url = "${SERVER}/find", ids = "*" }', "x"),
    ],
)
def test_one_that_is_not_set_costs_its_row(tmp_path: Path, entry: str, label: str) -> None:
    (tmp_path / "lineup.toml").write_text(f"{HEAD}{FAKE}[[contender]]\n{entry}\n")
    name = next(name for name in NAMES if f"${{{name}}}" in entry)

    outcome = run(Lineup.read(tmp_path / "lineup.toml"), Settings(cache=None))
    assert [row.contender.label for row in outcome.ran] == ["fake+faiss"]
    (lost,) = outcome.not_run
    assert lost.contender.label == label
    says(failure_words(lost.failure), name)

    code, out, err = bakeoff(tmp_path, "run", "lineup.toml", "--dry-run")
    assert code == 0, err
    (line,) = [line for line in out.splitlines() if name in line.removeprefix(label)]
    assert label in line
    code, out, err = bakeoff(tmp_path, "validate", "lineup.toml")
    says(out + err, f"{name}")


def test_a_result_with_such_a_row_is_written_whole(tmp_path: Path) -> None:
    served = '[[contender]]\nprovider = "openai"\nmodel = "${MODEL}"\nstore = ["faiss", "chroma"]\n'
    (tmp_path / "lineup.toml").write_text(f'{HEAD}{FAKE}{served}[[contender]]\nranker = "${{WHO}}"\nlabel = "words"\n')
    code, _, err = bakeoff(tmp_path, "run", "lineup.toml", "--no-charts")
    assert code == 0, err
    (folder,) = (tmp_path / "results").iterdir()
    rows = json.loads((folder / "metrics_summary.json").read_text(encoding="utf-8"))["rows"]
    lost = {row["label"]: row["not_run"]["lacks"][0] for row in rows if row.get("not_run")}
    unset = {name: {"id": "variable_unset", "arguments": {"variable": name}} for name in ("MODEL", "WHO")}
    assert lost == dict.fromkeys(("MODEL+faiss", "MODEL+chroma"), unset["MODEL"]) | {"words": unset["WHO"]}


def test_a_key_beside_one_that_is_not_set_is_refused_as_everywhere(tmp_path: Path) -> None:
    entry = 'provider = "openai"\nmodel = "${MODEL}"\nstore = "faiss"\noptions = { api_key = "sk-0123456789" }'
    with refuses(InputError, place="contender[0], options.api_key", file="lineup.toml"):
        _read(tmp_path, f"{HEAD}[[contender]]\n{entry}\n")


@pytest.mark.parametrize(
    ("table", "label"),
    [
        ('[[fusion]]\nof = ["bm25", "fake+faiss"]\nmethod = "${KIND}"\nlabel = "x"', "x"),
        ('[[rerank]]\nof = "bm25"\nprovider = "fake"\nmodel = "${MODEL}"', "bm25+MODEL"),
        ('[[rerank]]\nof = "bm25"\nprovider = "cohere"\nlabel = "x"\noptions = { base_url = "${ADDRESS}" }', "x"),
    ],
)
def test_one_that_is_not_set_costs_a_row_that_is_made_of_others(tmp_path: Path, table: str, label: str) -> None:
    name = next(name for name in NAMES if f"${{{name}}}" in table)
    lineup = _read(tmp_path, f'{HEAD}{FAKE}[[contender]]\nranker = "bm25"\n{table}\n')
    outcome = run(lineup, Settings(cache=None))
    assert [row.contender.label for row in outcome.ran] == ["fake+faiss", "bm25"]
    (lost,) = outcome.not_run
    assert lost.contender.label == label
    says(failure_words(lost.failure), name)


def test_two_that_are_not_set_are_said_at_once(tmp_path: Path) -> None:
    entry = 'provider = "${WHO}"\nmodel = "${MODEL}"\nstore = "faiss"\nlabel = "x"'
    (_, row) = _read(tmp_path, f"{HEAD}{FAKE}[[contender]]\n{entry}\n").contenders
    says(row.unset, "WHO", "MODEL")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (f'task = "${{TASK}}"\n{FAKE}', "task"),
        (f'[task]\nformat = "beir"\nfolder = "${{HERE}}/data"\n{FAKE}', "task.folder"),
        (f'{HEAD}measures = ["mrr", "${{SIZE}}"]\n{FAKE}', r"measures 2"),
    ],
)
def test_one_that_is_not_set_outside_of_rows_is_an_input_error(tmp_path: Path, text: str, place: str) -> None:
    with refuses(InputError, "lineup.toml", place, file="lineup.toml"):
        _read(tmp_path, text)
    code, _, err = bakeoff(tmp_path, "run", "lineup.toml")
    assert code == 2
    says(err, "lineup.toml")
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    "entry",
    [
        'provider = "openai"\nmodel = "${ACME_TOKEN}"\nstore = "faiss"',
        'provider = "openai"\nstore = "faiss"\nlabel = "${ACME_TOKEN}"',
        'provider = "openai"\nstore = "faiss"\noptions = { query_prompt = "${ACME_TOKEN}" }',
        'label = "x"\nretriever = { url = "https://h/${ACME_TOKEN}", ids = "*" }',
        'provider = "fake"\nstore = { name = "chroma", existing = "http://h/${ACME_TOKEN}", collection = "c" }',
    ],
)
def test_a_secret_is_refused_where_results_or_the_cache_would_hold_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: str
) -> None:
    monkeypatch.setenv("ACME_TOKEN", "t0p-secret-value")
    with refuses(InputError, "ACME_TOKEN", file="lineup.toml") as caught:
        _read(tmp_path, f"{HEAD}[[contender]]\n{entry}\n")
    assert "t0p-secret-value" not in f"{caught.value} {caught.value.remedy}"


def test_an_address_with_a_password_outside_of_options_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVER", "https://me:hunter2-hunter2@search.example/find")
    with refuses(InputError, "password", place="contender[0], retriever", file="lineup.toml") as caught:
        _read(tmp_path, f'{HEAD}[[contender]]\nretriever = "${{SERVER}}"\n')
    assert "hunter2" not in f"{caught.value} {caught.value.remedy}"


def test_what_was_filled_in_reaches_no_result_no_cache_and_no_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """A password in an address and a token in its path; the second row fails and is quoted."""
    monkeypatch.setenv("ACME_TOKEN", "t0p-secret-value")
    with WireServer() as wire:
        host = wire.base("openai").removeprefix("http://")
        monkeypatch.setenv("ADDRESS", f"http://me:hunter2-hunter2@{host}")
        monkeypatch.setenv("SERVER", "http://127.0.0.1:9")
        monkeypatch.setenv("MODEL", "text-embedding-3-small")
        rows = [
            'label = "there"\noptions = { base_url = "${ADDRESS}" }',
            'label = "gone"\noptions = { base_url = "${SERVER}/${ACME_TOKEN}/v1", timeout = 1 }',
        ]
        text = "".join(
            f'[[contender]]\nprovider = "openai"\nmodel = "${{MODEL}}"\nstore = "faiss"\n{r}\n' for r in rows
        )
        (tmp_path / "lineup.toml").write_text(HEAD + text)
        code, out, err = bakeoff(tmp_path, "run", "lineup.toml", "--no-charts", "--verbose")
        assert wire.embeddings()
    assert code == 0, err
    assert "1 of 2 contenders ran" in out
    printed = capfd.readouterr()
    said = [out, err, printed.out, printed.err, caplog.text]
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any("vectors" in path.parts for path in files)
    assert any(path.name == "metrics_summary.json" for path in files)
    said += [path.read_bytes().decode("latin-1") for path in files if path.name != "lineup.toml"]
    for text in said:
        assert "hunter2" not in text
        assert "t0p-secret-value" not in text
    _, full, _ = bakeoff(tmp_path, "show", "latest", "--full")
    assert "no server at http://127.0.0.1:9/***/v1" in full  # what is no secret is not struck out


def test_the_documented_example_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    section = (ROOT / "docs" / "reference" / "environment.md").read_text(encoding="utf-8").partition("## Variables")[2]
    for name in ("DATA", "EMBEDDING_MODEL", "DATABASE_URL", "EMBEDDING_URL"):
        monkeypatch.setenv(name, f"value-of-{name}")
    lineup = _read(tmp_path, section.partition("```toml\n")[2].partition("```")[0])
    assert lineup.task == {"format": "beir", "folder": "value-of-DATA/scifact"}
    assert [row.label for row in lineup.contenders] == [
        f"value-of-EMBEDDING_MODEL+{store}" for store in ("faiss", "pgvector")
    ]
    pgvector = lineup.contenders[1]
    assert isinstance(pgvector, Dense)
    assert pgvector.fill_store_options() == {"url": "value-of-DATABASE_URL"}


def test_a_task_in_the_environments_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tmp_path / "elsewhere"
    (data / "qrels").mkdir(parents=True)
    (data / "corpus.jsonl").write_text('{"_id": "a", "title": "", "text": "copper"}\n')
    (data / "queries.jsonl").write_text('{"_id": "q", "text": "copper"}\n')
    (data / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\ta\t1\n")
    monkeypatch.setenv("HERE", str(data))
    outcome = run(_read(tmp_path, f'[task]\nname = "t"\nformat = "beir"\nfolder = "${{HERE}}"\n{FAKE}'))
    assert isinstance(outcome.task, Task)
    assert outcome.scores["fake+faiss"]["mrr"] == [1.0]
