"""The schemas agree with the code: what it reads passes, what it refuses is found, at the same place."""

from __future__ import annotations

import json
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

import pytest
from bakeoff.core.paths import default_lineup
from bakeoff.evaluation.measures import MEASURES, Measure
from bakeoff.extensions.schema.commands import FILE
from bakeoff.extensions.schema.generate import FOLDER, schema_names, schema_text
from bakeoff.lineup.entries import ContenderEntry
from bakeoff.lineup.lineup import Lineup
from bakeoff.tasks.kinds import load_kind
from bakeoff_providers.errors import InputError
from jsonschema import Draft7Validator, Draft202012Validator

from tests.cli.test_wrong_arguments import bakeoff

ROOT = Path(__file__).parent.parent.parent.parent
BUILT_IN = [default_lineup(), *sorted((ROOT / "lineups").glob("*.toml"))]
TASKS = sorted((ROOT / "queries").glob("*/task.toml"))
NAMES = ("lineup", "task", "log")


class Mistake(NamedTuple):
    """A line of a valid file, what is written instead, the place of the error, and a word of its message."""

    old: str
    new: str
    place: str
    word: str = ""


LINEUP = """\
name = "shop"
task = "wikipedia"
measures = ["ndcg(gain=exp)@10", "MRR", "rprec"]
primary = "ndcg@10"
rounds = 3
baseline = "bm25"

[[contender]]
ranker = "bm25"
options = { k1 = 1.2 }

[[contender]]
provider = "minilm"
options = { compute = "int8" }
store = { name = "faiss", options = { index = "HNSW32", ef = 64 } }
precision = "float32"
dimensions = [256, 128]
chunking = { strategy = "sentence", size = 64 }
prompt = []
rerank = { provider = "fake", depth = 20 }

[[contender]]
provider = "${ANY_PROVIDER}"
model = "${ANY_MODEL}"
store = ["faiss", "${ANY_STORE}"]

[[contender]]
provider = "openai"
label = "old"
store = { name = "chroma", existing = "./chroma_db", collection = "docs" }
search = "vectors"

[[contender]]
label = "tokens"
provider = "minilm"
vectors = "tokens"
store = { name = "lancedb", options = { index = "none" } }

[[contender]]
retriever = { url = "http://127.0.0.1:9/search", ids = "hits.*.id", timeout = 5 }

[[contender]]
retriever = "file:mine.py:search"
options = { anything = 1 }

[[contender]]
provider = "tfidf"
store = ["faiss", "chroma"]

[[fusion]]
of = ["bm25", "tokens"]
method = "rrf"

[[rerank]]
of = "bm25"
label = "second"
provider = "minilm"
vectors = "tokens"
options = { compute = "int8" }
"""
LINEUP_MISTAKES = [
    Mistake("rounds = 3", "round = 3", "$", "'round'"),
    Mistake("rounds = 3", 'rounds = "3"', "$.rounds"),
    Mistake("rounds = 3", "rounds = 0", "$.rounds"),
    Mistake('task = "wikipedia"', "", "$", "'tasks'"),
    Mistake('task = "wikipedia"', 'task = "wikipedia"\ntasks = [{ task = "films" }]', "$.tasks"),
    Mistake('task = "wikipedia"', "task = 3", "$.task"),
    Mistake('task = "wikipedia"', "tasks = [{ taks = 3 }]", "$.tasks[0]", "'taks'"),
    Mistake('primary = "ndcg@10"', 'primary = "ndgc@10"', "$.primary"),
    Mistake('"MRR"', '"p"', "$.measures[1]"),
    Mistake('"MRR"', '"rprec@5"', "$.measures[1]"),
    Mistake('"MRR"', '"ndcg(gain=cubic)@5"', "$.measures[1]"),
    Mistake('"MRR"', '"mrr(gain=exp)"', "$.measures[1]"),
    Mistake('baseline = "bm25"', "baseline = true", "$.baseline"),
    Mistake('ranker = "bm25"', 'ranker = "bm26"', "$.contender[0].ranker"),
    Mistake('ranker = "bm25"', 'ranker = "bm25"\nstore = "faiss"', "$.contender[0].store"),
    Mistake('ranker = "bm25"', 'ranker = "bm25"\nprovider = "minilm"', "$.contender[0]"),
    Mistake('ranker = "bm25"', "", "$.contender[0]"),
    Mistake("{ k1 = 1.2 }", "{ k2 = 1.2 }", "$.contender[0].options", "'k2'"),
    Mistake('provider = "minilm"\noptions', 'provider = "minilmm"\noptions', "$.contender[1].provider"),
    Mistake('{ compute = "int8" }\nstore', "{ max_features = 10 }\nstore", "$.contender[1].options", "'max_features'"),
    Mistake('{ compute = "int8" }\nstore', '{ compute = "int4" }\nstore', "$.contender[1].options.compute"),
    Mistake('{ compute = "int8" }\nstore', "{ threads = 0 }\nstore", "$.contender[1].options.threads"),
    Mistake('{ name = "faiss", options', '{ name = "fais", options', "$.contender[1].store.name"),
    Mistake('index = "HNSW32", ef', 'index = "HNSW32", ef_search', "$.contender[1].store.options", "'ef_search'"),
    Mistake("ef = 64", 'ef = "64"', "$.contender[1].store.options.ef"),
    Mistake('precision = "float32"', 'precision = "float16"', "$.contender[1].precision"),
    Mistake('precision = "float32"', 'precision = ["int8", "int4"]', "$.contender[1].precision[1]"),
    Mistake("[256, 128]", '[256, "128"]', "$.contender[1].dimensions[1]"),
    Mistake('"sentence"', '"sentences"', "$.contender[1].chunking.strategy"),
    Mistake("size = 64", "length = 64", "$.contender[1].chunking", "'length'"),
    Mistake("prompt = []", "prompt = [{ queries = '' }]", "$.contender[1].prompt[0]", "'queries'"),
    Mistake('{ provider = "fake"', '{ provider = "fakir"', "$.contender[1].rerank.provider"),
    Mistake('{ provider = "fake"', '{ of = "bm25", provider = "fake"', "$.contender[1].rerank.of"),
    Mistake('"fake", depth = 20', '"fake", options = { batch = 2 }', "$.contender[1].rerank.options", "'batch'"),
    Mistake('["faiss", "chroma"]', '["faiss", "croma"]', "$.contender[7].store[1]"),
    Mistake('search = "vectors"', 'search = "words"', "$.contender[3].search"),
    Mistake('["faiss", "chroma"]', '["lancedb", "faiss"]\nsearch = "hybrid"', "$.contender[7].store[1]"),
    Mistake('{ name = "chroma", existing', '{ name = "hnswlib", existing', "$.contender[3].store.name"),
    Mistake('existing = "./chroma_db", ', "", "$.contender[3].store", "'existing'"),
    Mistake('store = ["faiss", "chroma"]', "", "$.contender[7]", "'store'"),
    Mistake('{ name = "lancedb", options', '{ name = "qdrant", options', "$.contender[4].store.name"),
    Mistake('index = "none"', 'type = "bit"', "$.contender[4].store.options", "'type'"),
    Mistake('url = "http://127.0.0.1:9/search", ', "", "$.contender[5].retriever"),
    Mistake("timeout = 5", "timeouts = 5", "$.contender[5].retriever", "'timeouts'"),
    Mistake('"file:mine.py:search"', '"ftp://mine/search"', "$.contender[6].retriever"),
    Mistake('method = "rrf"', 'method = "rff"', "$.fusion[0].method"),
    Mistake('of = ["bm25", "tokens"]', "", "$.fusion[0]", "'of'"),
    Mistake('"tokens"\noptions = { compute', '"tokens"\noptions = { computes', "$.rerank[0].options", "'computes'"),
    Mistake('of = "bm25"\n', "", "$.rerank[0]", "'of'"),
]  # fmt: skip
TASK = """\
name = "shop"
about = "What our customers ask."
format = "tables"
documents = "documents.csv"
queries = "queries.csv"
rel = 2
columns = { documents = { id = "sku" } }
targets = { "p@5" = 0.7 }
"""
ORDERED = """\
kind = "ordered"
items = "films.json"
truth = "similar.json"
facets = { plot = "similar_by_plot" }
k = [1, 5]
"""
TASK_MISTAKES = [
    Mistake('"tables"', '"table"', "$.format"),
    Mistake('format = "tables"', "", "$", "'format'"),
    Mistake('format = "tables"', 'kind = "grade"', "$.kind"),
    Mistake('queries = "queries.csv"', "", "$", "'queries'"),
    Mistake("rel = 2", "rel = 0", "$.rel"),
    Mistake("rel = 2", 'split = "test"', "$", "'split'"),
    Mistake("rel = 2", "judged_only = 1", "$.judged_only"),
    Mistake("0.7", '"high"', "$.targets['p@5']"),
]  # fmt: skip
ORDERED_MISTAKES = [
    Mistake("k = [1, 5]", 'k = [1, "5"]', "$.k[1]"),
    Mistake("k = [1, 5]", 'documents = "a.csv"', "$", "'documents'"),
    Mistake('truth = "similar.json"', "", "$", "'truth'"),
]


@cache
def validator(name: str) -> Any:
    return Draft202012Validator(json.loads((FOLDER / f"{name}.schema.json").read_text(encoding="utf-8")))


def errors(name: str, content: Any) -> list[tuple[str, str]]:
    return [(error.json_path, error.message) for error in validator(name).iter_errors(content)]


def with_mistake(text: str, mistake: Mistake) -> str:
    assert text.count(mistake.old) == 1, mistake
    return text.replace(mistake.old, mistake.new)


def _names(mistake: Any) -> str:
    return mistake.new.replace("\n", "; ") or f"no {mistake.old}" if isinstance(mistake, Mistake) else ""


@pytest.mark.parametrize("name", NAMES)
def test_the_shipped_schema_is_what_the_code_says(name: str) -> None:
    shipped = (FOLDER / f"{name}.schema.json").read_text(encoding="utf-8")
    assert shipped == schema_text(name, installed=False), "python -m tests.extensions.schema.test_schema writes it"
    for draft in (Draft202012Validator, Draft7Validator):  # some editors know the older one alone
        draft.check_schema(json.loads(shipped))


def test_every_schema_is_shipped() -> None:
    assert sorted(path.name for path in FOLDER.glob("*.json")) == sorted(f"{name}.schema.json" for name in NAMES)
    assert sorted(schema_names()) == sorted(NAMES)


@pytest.mark.parametrize("path", BUILT_IN, ids=lambda path: path.stem)
def test_built_in_line_ups_pass(path: Path) -> None:
    assert errors("lineup", tomllib.loads(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("path", TASKS, ids=lambda path: path.parent.name)
def test_built_in_tasks_pass_in_their_file_and_in_a_line_up(path: Path) -> None:
    task = tomllib.loads(path.read_text(encoding="utf-8"))
    assert errors("task", task) == []
    assert errors("lineup", {"task": task, "contender": [{"ranker": "bm25"}]}) == []


def test_what_passes_is_read(tmp_path: Path) -> None:
    (tmp_path / "lineup.toml").write_text(LINEUP)
    (tmp_path / "mine.py").write_text("def search(query, k): return []\n")
    assert errors("lineup", tomllib.loads(LINEUP)) == []
    Lineup.read(tmp_path / "lineup.toml")
    for text in (TASK, ORDERED):
        assert errors("task", tomllib.loads(text)) == []
        assert errors("lineup", {"task": tomllib.loads(text), "contender": [{"ranker": "bm25"}]}) == []


@pytest.mark.parametrize("mistake", LINEUP_MISTAKES, ids=_names)
def test_a_mistake_in_a_line_up_is_found_where_it_is(mistake: Mistake, tmp_path: Path) -> None:
    text = with_mistake(LINEUP, mistake)
    found = errors("lineup", tomllib.loads(text))
    assert any(place == mistake.place and mistake.word in message for place, message in found), found
    (tmp_path / "lineup.toml").write_text(text)
    with pytest.raises(InputError):
        Lineup.read(tmp_path / "lineup.toml")


@pytest.mark.parametrize(
    ("text", "mistake"),
    [*((TASK, mistake) for mistake in TASK_MISTAKES), *((ORDERED, mistake) for mistake in ORDERED_MISTAKES)],
    ids=_names,
)
def test_a_mistake_in_a_task_is_found_where_it_is(text: str, mistake: Mistake, tmp_path: Path) -> None:
    content = tomllib.loads(with_mistake(text, mistake))
    found = errors("task", content)
    assert any(place == mistake.place and mistake.word in message for place, message in found), found
    inline = errors("lineup", {"task": content, "contender": [{"ranker": "bm25"}]})
    assert any(place == f"$.task{mistake.place[1:]}" for place, _ in inline), inline
    with pytest.raises(InputError):
        load_kind(content, tmp_path)


def test_what_the_documentation_shows_passes(tmp_path: Path) -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    blocks = [
        block for page in pages for block in re.findall(r"^```toml\n(.*?)^```", page.read_text("utf-8"), re.M | re.S)
    ]
    read = 0
    for block in blocks:
        whole = block if re.search(r"^(task =|\[task\]|\[\[tasks)", block, re.M) else f'task = "wikipedia"\n{block}'
        (tmp_path / "shown.toml").write_text(whole)
        try:
            Lineup.read(tmp_path / "shown.toml")
        except InputError:  # an excerpt
            continue
        read += 1
        content = tomllib.loads(whole)
        content["contender"] = [one for one in content["contender"] if "acme" not in str(one)]  # not installed
        assert errors("lineup", content) == [], block
    assert read > 40


SPELLINGS = ("{}", "{}@10", "{} @ 3", "{}@0", "{}@", "{}@1.5", "{}()@5", "{}(rel=2)@5", "{}(rel=2)",
             "{}( rel = 2 , unjudged=removed )@ 5",
             "{}(gain=exp)@5", "{}(GAIN=Exp)", "{}(gain=cubic)@5", "{}(unjudged=removed)@5", "{}(p=0.5)", "{}(p=.5)",
             "{}(max=3)@5", "{}(over=found)@10", "{}x@10", " {}@10 ", "{}(rel)@5", "{}@10@10")  # fmt: skip


@pytest.mark.parametrize("name", MEASURES.builtin)
@pytest.mark.parametrize("form", SPELLINGS)
def test_the_pattern_of_measures_takes_what_is_parsed(name: str, form: str) -> None:
    for text in (form.format(name), form.format(name).upper()):
        found = errors("lineup", {"task": "t", "contender": [{"ranker": "bm25"}], "measures": [text]})
        try:
            Measure.parse(text)
        except InputError:
            assert [place for place, _ in found] == ["$.measures[0]"]
        else:
            assert found == []


def test_a_line_of_a_log() -> None:
    line = {"query": "lamp", "shown": ["17", "19"], "clicked": [], "time": "2026-11-16T12:30:00", "user": "u1"}
    assert errors("log", line) == []
    assert errors("log", line | {"of": "other systems"}) == []  # columns that nobody reads
    assert [place for place, _ in errors("log", line | {"shown": "17 19"})] == ["$.shown"]
    assert [place for place, _ in errors("log", line | {"clicked": [17]})] == ["$.clicked[0]"]
    assert "'query'" in errors("log", {"shown": []})[0][1]


def test_every_key_has_its_meaning() -> None:
    whole = validator("lineup").schema
    contender = whole["properties"]["contender"]["items"]["properties"]
    assert all(key["description"] for key in [*whole["properties"].values(), *contender.values()])
    declared = get_type_hints(ContenderEntry, include_extras=True)["dimensions"].__metadata__
    assert contender["dimensions"]["description"] == declared[0]
    log = validator("log").schema["properties"]
    assert all(key["description"] for key in log.values())


def test_plug_ins_of_other_packages_are_known_where_they_are_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine-1.dist-info").mkdir()
    (tmp_path / "mine-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1\n")
    (tmp_path / "mine-1.dist-info" / "entry_points.txt").write_text(
        "[bakeoff.rankers]\nmine_words = mine_ranker:Mine\nmine_broken = mine_missing:Mine\n"
    )
    (tmp_path / "mine_ranker.py").write_text("class Mine:\n    def __init__(self, depth: int = 3) -> None: ...\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    here = Draft202012Validator(json.loads(schema_text("lineup")))
    rows = {"task": "t", "contender": [{"ranker": "mine_words", "options": {"depth": 2}}]}
    assert list(here.iter_errors(rows)) == []
    assert [place for place, _ in errors("lineup", rows)] == ["$.contender[0].ranker"]
    rows["contender"][0]["options"] = {"depth": "2"}  # type: ignore[index]
    assert [error.json_path for error in here.iter_errors(rows)] == ["$.contender[0].options.depth"]


def test_the_command_prints_it_and_init_writes_it_beside_the_line_up(tmp_path: Path) -> None:
    code, out, err = bakeoff(tmp_path, "init", "wikipedia", "--out", "mine.toml")
    assert code == 0, err
    first, *_ = (tmp_path / "mine.toml").read_text(encoding="utf-8").splitlines()
    assert first == f"#:schema ./{FILE}"
    assert FILE in out
    code, out, err = bakeoff(tmp_path, "schema", "lineup")
    assert (tmp_path / FILE).read_text(encoding="utf-8") == out, err
    (tmp_path / FILE).write_text("{}")
    assert bakeoff(tmp_path, "init", "wikipedia", "--out", "other.toml")[0] == 0
    assert (tmp_path / FILE).read_text() == "{}"  # whoever wrote it
    assert bakeoff(tmp_path, "init", "wikipedia", "--out", "other.toml", "--force")[0] == 0
    assert (tmp_path / FILE).read_text(encoding="utf-8") == out
    assert bakeoff(tmp_path, "schema", "lineups")[0] == 2


def test_examples_that_init_writes_are_valid_once_uncommented(tmp_path: Path) -> None:
    bakeoff(tmp_path, "init", "wikipedia")
    text = (tmp_path / "bakeoff.toml").read_text(encoding="utf-8")
    assert errors("lineup", tomllib.loads(text)) == []
    whole = re.sub(r"^# (?=\[\[|\w+ = )", "", text, flags=re.M)
    (tmp_path / "bakeoff.toml").write_text(whole, encoding="utf-8")
    assert errors("lineup", tomllib.loads(whole)) == []
    lineup = Lineup.read(tmp_path / "bakeoff.toml")
    assert lineup.baseline == "bm25"
    assert [row.label for row in lineup.contenders] == [
        "bm25", "minilm+faiss", "minilm@sentence-64+faiss", "minilm@whole+faiss", "minilm+lancedb-hybrid",
        "text-embedding-3-small@1536+faiss", "text-embedding-3-small@256+faiss", "bm25+minilm+faiss",
    ]  # fmt: skip
    code, _, err = bakeoff(tmp_path, "validate")
    assert code == 0, err


if __name__ == "__main__":
    for each in NAMES:
        (FOLDER / f"{each}.schema.json").write_text(schema_text(each, installed=False), encoding="utf-8")
