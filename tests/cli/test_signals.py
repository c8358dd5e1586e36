"""Cancel means stop: no request after the signal, what arrived is kept, and nothing is left in the temporary folder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from bakeoff.embedding.cache import VectorCache
from bakeoff.lineup.lineup import Lineup
from bakeoff.running.runner import Settings, run
from bakeoff.search.stores.scratch import LOCK, PREFIX, collect, scratch

from tests.errors import says
from tests.native_task import native_files, ungraded_task, write_lineup
from tests.terminal import bakeoff
from tests.wire import PROXIES, Fault, WireServer

PATIENCE = 30.0  # seconds after which a test gives up; the waits that it cancels are longer


@pytest.fixture
def wire() -> Iterator[WireServer]:
    with WireServer() as server:
        yield server


def _lineup(wire: WireServer) -> str:
    return (
        'task = "wikipedia"\n[[contender]]\nprovider = "openai"\nstore = "faiss"\n'
        f'options = {{ base_url = "{wire.base("openai")}", batch_items = 4 }}\n'
    )


def _start(folder: Path, wire: WireServer) -> subprocess.Popen[str]:
    lineup = folder / "lineup.toml"
    lineup.write_text(_lineup(wire))
    return _bakeoff(folder, "run", str(lineup), "--out", str(folder / "results"))


def _bakeoff(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    (folder / "tmp").mkdir()
    variables = {name: value for name, value in os.environ.items() if name not in PROXIES}
    variables |= {"TMPDIR": str(folder / "tmp"), "BAKEOFF_HOME": str(folder / "home")}
    variables |= {"OPENAI_API_KEY": "k" * 20, "CO_API_KEY": "k" * 20}
    command = [sys.executable, "-m", "bakeoff", *arguments]
    return subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _wait_for_requests(wire: WireServer, count: int, process: subprocess.Popen[str]) -> None:
    until = time.monotonic() + 60
    while len(wire.embeddings()) + len(wire.chats()) < count:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 128 + signal.SIGTERM)])
def test_ctrl_c_is_the_ordinary_end_of_grading(tmp_path: Path, number: signal.Signals, code: int) -> None:
    ungraded_task(tmp_path)
    command = [sys.executable, "-u", "-m", "bakeoff", "annotate", str(tmp_path / "task"), "--who", "ada", "--no-open"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert "Open http://127.0.0.1" in process.stdout.readline()
    says(process.stdout.readline())
    time.sleep(0.3)  # until it serves
    process.send_signal(number)
    said, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == code, errors
    says(said, "0 of 6 graded")
    assert ("interrupted" in errors) == (code != 0)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("kind", ["retry", "in flight"])
def test_a_signal_ends_a_run(tmp_path: Path, wire: WireServer, number: signal.Signals, kind: str) -> None:
    hold = Fault(status=429, headers={"Retry-After": "50"}) if kind == "retry" else Fault(kind="slow", seconds=50)
    wire.faults += [None, None, *[hold] * 100]
    process = _start(tmp_path, wire)
    _wait_for_requests(wire, 3, process)
    time.sleep(0.5)  # until every worker holds
    asked = len(wire.embeddings())
    process.send_signal(number)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 128 + number
    assert len(wire.embeddings()) == asked
    assert "interrupted" in said
    assert "Traceback" not in said
    assert list((tmp_path / "tmp").glob(f"{PREFIX}*")) == []
    assert not (tmp_path / "results").exists()


WAITING = {
    "rerank": '[[contender]]\nranker = "bm25"\n'
    'rerank = {{ provider = "cohere", options = {{ base_url = "{url}" }} }}\n',
    "retriever": '[[contender]]\nlabel = "live"\n[contender.retriever]\nurl = "{url}/v2/rerank"\n'
    'body = {{ model = "m", query = "{{text}}", documents = ["a"] }}\nids = "results.*.index"\n',
}


@pytest.mark.slow
@pytest.mark.parametrize("what", ["chat", "rerank", "retriever"])
def test_a_signal_ends_every_other_wait(tmp_path: Path, wire: WireServer, what: str) -> None:
    """Each is told to come back in 50 seconds."""
    wire.faults += [Fault(status=429, headers={"Retry-After": "50"})] * 100
    if what == "chat":
        ungraded_task(tmp_path)
        model = ["--judge", "llm", "--model", "openai:m", "--set", f"base_url={wire.base('openai')}"]
        process = _bakeoff(tmp_path, "grade", str(tmp_path / "task"), "--all-below", "10", *model)
    else:
        head = 'measures = ["mrr"]\nrounds = 1'
        lineup = write_lineup(tmp_path, native_files(), head=head, contenders=WAITING[what].format(url=wire.url))
        process = _bakeoff(tmp_path, "run", str(lineup), "--out", str(tmp_path / "results"))
    _wait_for_requests(wire, 1, process)
    time.sleep(0.5)  # until every worker holds
    asked = len(wire.requests)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 128 + signal.SIGINT, said
    assert len(wire.requests) == asked
    assert "interrupted" in said
    assert "Traceback" not in said
    assert list((tmp_path / "tmp").glob(f"{PREFIX}*")) == []
    assert not (tmp_path / "results").exists()


def _kept(folder: Path) -> int:
    return sum(info.vectors for info in VectorCache(folder / "home" / "vectors").spaces())


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_run_after_it_asks_for_nothing_that_was_written(
    tmp_path: Path, wire: WireServer, number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    wire.faults += [*[None] * 3, *[Fault(kind="slow", seconds=50)] * 4]
    process = _start(tmp_path, wire)
    _wait_for_requests(wire, 7, process)  # three answered batches; the four that are under way are not
    while _kept(tmp_path) < 12:
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(number)
    process.communicate(timeout=PATIENCE)
    assert not (tmp_path / "results").exists()
    assert _kept(tmp_path) == 12
    interrupted = wire.embeddings()
    answered = {text for request in interrupted[:3] for text in request.texts}
    wire.faults.clear()
    wire.requests.clear()
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "k" * 20)
    outcome = run(Lineup.read(tmp_path / "lineup.toml"), Settings(cache=tmp_path / "home" / "vectors"))
    assert len(outcome.ran) == 1
    asked = [text for request in wire.embeddings() for text in request.texts]
    assert not answered & set(asked)
    assert len(asked) == len(set(asked)) == 45 - 12  # 25 articles and 20 queries


def test_what_a_killed_run_leaves_is_collected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    code = (
        "import os, tempfile; from bakeoff.search.stores.scratch import scratch; "
        f"tempfile.tempdir = {str(tmp_path)!r}\n"
        "with scratch() as folder:\n (folder / 'index').write_bytes(b'x'); os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    assert (left / LOCK).is_file()
    with scratch() as ours:
        assert list(tmp_path.iterdir()) == [ours]
        assert collect() == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder that nobody can write into")
def test_a_folder_that_can_not_be_written_is_found_before_anything_is_asked(tmp_path: Path, wire: WireServer) -> None:
    (tmp_path / "lineup.toml").write_text(_lineup(wire))
    with pytest.MonkeyPatch.context() as patch:
        for name in PROXIES:
            patch.delenv(name, raising=False)
        done = bakeoff(
            "run", "lineup.toml", "--out", "/proc/results", cwd=tmp_path, BAKEOFF_HOME=str(tmp_path / "home"),
            OPENAI_API_KEY="k" * 20,
        )  # fmt: skip
    assert done.returncode == 2
    says(done.stderr, "proc/results")
    assert wire.embeddings() == []


@pytest.mark.parametrize("command", ["show", "compare", "validate", "run"])
def test_a_name_that_no_file_may_have_is_one_line(tmp_path: Path, command: str) -> None:
    done = bakeoff(command, "x" * 5000 + ".toml", cwd=tmp_path)
    assert done.returncode in (1, 2)
    assert "Traceback" not in done.stderr
    assert "unexpected" not in done.stderr


@pytest.mark.slow
def test_ctrl_c_keeps_the_answers_that_are_bought(
    tmp_path: Path, wire: WireServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four requests are under way: they are answered a second later, and nothing is asked for twice."""
    wire.faults += [*[None] * 3, *[Fault(kind="slow", seconds=1.5)] * 4]
    process = _start(tmp_path, wire)
    _wait_for_requests(wire, 7, process)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 128 + signal.SIGINT, said
    assert len(wire.embeddings()) == 7
    assert _kept(tmp_path) == sum(len(request.texts) for request in wire.embeddings())
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "k" * 20)
    assert run(Lineup.read(tmp_path / "lineup.toml"), Settings(cache=tmp_path / "home" / "vectors")).ran
    asked = [text for request in wire.embeddings() for text in request.texts]
    assert len(asked) == len(set(asked)) == 45


@pytest.mark.slow
def test_a_second_ctrl_c_gives_up_what_is_bought(tmp_path: Path, wire: WireServer) -> None:
    wire.faults += [Fault(kind="slow", seconds=50)] * 100
    process = _start(tmp_path, wire)
    _wait_for_requests(wire, 4, process)
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    while "again" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 128 + signal.SIGINT
