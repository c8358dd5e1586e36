"""A disk without room: said in words before anything is asked for, also where a paid answer would be kept later."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from bakeoff.core.files import check_writable, write_atomic, write_folder
from bakeoff.core.paths import root
from bakeoff.embedding.space import Space
from bakeoff.extensions.testsets.answers import AnswerCache
from bakeoff.results.schema import read_summary
from bakeoff_providers.errors import InputError

from tests.errors import says
from tests.native_task import native_files, pages, write_lineup
from tests.terminal import Ended, bakeoff
from tests.wire import PROXIES, WireServer

NOWHERE = Path("/proc/no-such-folder")


def _bakeoff_without_room(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    variables = {name: value for name, value in os.environ.items() if name not in PROXIES}
    variables |= {"BAKEOFF_HOME": str(folder / "home"), "OPENAI_API_KEY": "k" * 20}
    return subprocess.run(
        [sys.executable, "-m", "bakeoff", *arguments],
        env=variables,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)),
    )


def _bakeoff_without_home(folder: Path, *arguments: str) -> Ended:
    """Where nobody can make a folder: results can be written, vectors and scores can't be kept."""
    with pytest.MonkeyPatch.context() as patch:
        for name in PROXIES:
            patch.delenv(name, raising=False)
        return bakeoff(*arguments, cwd=folder, BAKEOFF_HOME=str(NOWHERE), OPENAI_API_KEY="k" * 20, CO_API_KEY="k" * 20)


def test_a_judge_is_not_asked_where_its_grades_can_not_be_kept(tmp_path: Path) -> None:
    task = root() / "queries" / "wikipedia"
    shutil.copytree(task, tmp_path / "task")
    text = (task / "task.toml").read_text()
    line = next(line for line in text.splitlines() if line.startswith("articles"))
    source = (task / line.split("=")[1].strip().strip('"')).resolve()
    assert source.is_file()
    (tmp_path / "task" / "task.toml").write_text(text.replace(line, f"articles = {json.dumps(str(source))}"))
    with WireServer() as wire:
        wire.answer = lambda model, prompt: '{"grade": 2, "reason": "x"}'
        chat = ["--model", "openai:gpt-4o-mini", "--set", f"base_url={wire.base('openai')}"]
        done = _bakeoff_without_room(tmp_path, "grade", "task", "--judge", "llm", *chat)
        assert wire.chats() == []
    assert done.returncode == 2
    says(done.stderr)


def test_a_canary_is_not_recorded_where_it_can_not_be_kept(tmp_path: Path) -> None:
    with WireServer() as wire:
        done = _bakeoff_without_room(tmp_path, "canary", "record", "openai", "--set", f"base_url={wire.base('openai')}")
        assert wire.embeddings() == []
    assert done.returncode == 2
    says(done.stderr)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder that nobody can write into")
def test_what_the_disk_refuses_names_the_file(tmp_path: Path) -> None:
    for attempt in (
        lambda: check_writable(NOWHERE),
        lambda: write_atomic(NOWHERE / "x.json", "{}"),
        lambda: write_folder(NOWHERE / "result", lambda draft: None),
        lambda: write_atomic(tmp_path / ("x" * 300), "{}"),
        lambda: write_atomic(tmp_path / "a\0b", "{}"),
        lambda: Space(NOWHERE, {"model": "m"}).check_writable(1),
    ):
        with pytest.raises(InputError) as caught:
            attempt()
        assert caught.value.file is not None
        assert caught.value.remedy


def test_room_is_looked_for_once_and_before_the_first_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[str] = []
    disk_usage = shutil.disk_usage

    def usage(path: Path) -> object:
        looks.append("vectors")
        return disk_usage(path)

    monkeypatch.setattr("bakeoff.extensions.testsets.answers.check_writable", lambda *_: looks.append("answers"))
    monkeypatch.setattr("shutil.disk_usage", usage)
    answers = AnswerCache(tmp_path, {"model": "m"})
    answers.check_writable()
    assert looks == ["answers"]
    space = Space(tmp_path / "space", {"model": "m"})
    space.check_writable(1)
    assert looks == ["answers", "vectors"]
    answers.check_writable()
    space.check_writable(1)
    space.put(["a"], np.ones((1, 2), dtype=np.float32), None)
    assert looks == ["answers", "vectors"]
    space.check_writable(2)  # more than there was room for when it was looked for
    assert looks == ["answers", "vectors", "vectors"]
    space.close()


def test_a_name_that_no_file_can_have_is_named_by_its_option() -> None:
    from bakeoff.cli.main import app
    from typer.testing import CliRunner

    for arguments in (["report", "x" * 5000], ["log", "import", "x" * 5000], ["agreement", "x" * 5000]):
        done = CliRunner().invoke(app, arguments)
        assert not isinstance(done.exception, OSError), arguments
        says(done.output + str(done.exception))


def test_weights_are_not_fetched_where_they_can_not_be_kept(tmp_path: Path) -> None:
    done = _bakeoff_without_room(tmp_path, "models", "pull", "minilm", "--from", str(tmp_path / "nowhere"))
    assert done.returncode == 2
    says(done.stderr)
    assert "nowhere" not in done.stderr


def test_a_reranker_is_not_asked_where_its_scores_can_not_be_kept(tmp_path: Path) -> None:
    with WireServer() as wire:
        (tmp_path / "lineup.toml").write_text(
            'task = "wikipedia"\nrounds = 1\n[[contender]]\nranker = "bm25"\n'
            f'rerank = {{ provider = "cohere", options = {{ base_url = "{wire.base("cohere")}" }} }}\n'
        )
        done = _bakeoff_without_home(tmp_path, "run", "lineup.toml", "--no-charts")
        assert wire.embeddings() == []
    assert done.returncode == 0  # bm25 has answered; the reranked row says why it has not
    (folder,) = (tmp_path / "results").iterdir()
    (lost,) = [row.not_run for row in read_summary(folder).rows if row.not_run is not None]
    assert lost.kind == "input"


def test_sizes_of_a_corpus_that_no_contender_answered_for_are_no_table(tmp_path: Path) -> None:
    with WireServer() as wire:
        options = f'options = {{ base_url = "{wire.base("openai")}" }}\n'
        texts = {1: ("One", "first"), 2: ("Two", "second"), 3: ("Three", "third")}
        files = native_files(pages(texts), {"q1": "ask"}, {"q1": {"1": 3, "2": 1}})
        openai = f'[[contender]]\nprovider = "openai"\nstore = "faiss"\n{options}'
        write_lineup(tmp_path, files, contenders=openai, name="lineup")
        done = _bakeoff_without_home(tmp_path, "corpus-size", "lineup.toml")
        assert wire.embeddings() == []
    assert done.returncode == 1
    assert done.stdout == ""
    says(done.stderr, "openai+faiss", "proc/no-such-folder/vectors")
