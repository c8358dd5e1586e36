"""`bakeoff init`: the line-up that it writes validates and runs; what it can't use, it names, and writes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from bakeoff.lineup.lineup import Lineup
from bakeoff.running.runner import run
from bakeoff.tasks.load import load_task

from tests.commands.test_wrong_arguments import bakeoff

FLAGS = ["init", "--documents", "data/documents.csv", "--queries", "queries.jsonl", "--judgments", "judgments.csv"]
GRADES = ["--grade", "Exact=3", "--grade", "Partial=1", "--grade", "Irrelevant=0"]


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "documents.csv").write_text(
        "sku,name,description,price\n17,Desk lamp,A small lamp for reading,20\n19,Oak desk,A desk of solid oak,300\n"
    )
    (tmp_path / "queries.jsonl").write_text(
        '{"qid": "q1", "query": "light for reading"}\n{"qid": "q2", "query": "desk"}\n'
    )
    (tmp_path / "judgments.csv").write_text(
        "qid,sku,label\nq1,17,Exact\nq1,19,Irrelevant\nq2,19,Exact\nq2,17,Partial\n"
    )
    return tmp_path


def test_what_it_writes_validates_and_runs(shop: Path) -> None:
    code, out, err = bakeoff(shop, *FLAGS, *GRADES)
    assert code == 0, err
    assert "next: bakeoff validate\n" in out
    lineup = Lineup.read(shop / "bakeoff.toml")
    task = load_task(lineup.task, shop)
    assert task.judgments == {"q1": {"17": 3, "19": 0}, "q2": {"19": 3, "17": 1}}
    assert {document.id: document.title for document in task.documents} == {"17": "Desk lamp", "19": "Oak desk"}
    assert [contender.label for contender in lineup.contenders] == ["bm25", "minilm+faiss"]
    assert run(lineup.narrowed(["bm25"])).scores["bm25"]["mrr"] == [1, 1]
    code, out, err = bakeoff(shop, "validate")
    assert code == 0, err
    assert "bakeoff.toml: valid" in out


def test_a_lineup_that_is_there_stays_unless_forced(shop: Path) -> None:
    (shop / "bakeoff.toml").write_text("mine")
    code, _, err = bakeoff(shop, *FLAGS, *GRADES)
    assert code == 2
    assert "--force" in err
    assert (shop / "bakeoff.toml").read_text() == "mine"
    assert bakeoff(shop, *FLAGS, *GRADES, "--force")[0] == 0
    assert "[[contender]]" in (shop / "bakeoff.toml").read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (FLAGS, "the grade 'Exact' is no number"),
        ([*FLAGS, *GRADES, "--column", "documents.text=body"], "has no column 'body'"),
        ([*FLAGS, *GRADES, "--column", "documents.id=name", "--column", "judgments.document=qid"], "judgments.csv"),
        (FLAGS[:5], "no judgments were named"),
        (["init", "--documents", "data", *FLAGS[3:]], "data: no such file"),
    ],
)
def test_what_it_can_not_use_is_named_and_nothing_is_written(shop: Path, arguments: list[str], said: str) -> None:
    before = sorted(shop.rglob("*"))
    code, _, err = bakeoff(shop, *arguments)
    assert code == 2, err
    assert said in err
    assert sorted(shop.rglob("*")) == before
