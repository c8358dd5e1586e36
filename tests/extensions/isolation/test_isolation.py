"""Code in a process of its own: it can do there what it likes, and only its row fails."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import psutil
import pytest
from bakeoff.core.clock import limit_calls, time_call
from bakeoff.core.facts import fact
from bakeoff.extensions.isolation.parts import create, is_foreign
from bakeoff.extensions.isolation.process import MISSES, Ended
from bakeoff.lineup.lineup import Lineup, lineup_text
from bakeoff.report.words import failure_words
from bakeoff.results.summary import summarise
from bakeoff.running.runner import Outcome, run
from bakeoff.search.answer import NoAnswer
from bakeoff.search.retrievers import RETRIEVERS, Retriever
from bakeoff.search.stores import STORES
from bakeoff.search.stores.base import Store
from bakeoff.search.stores.faiss import Faiss
from bakeoff_providers import PROVIDERS, stopping
from bakeoff_providers.base import Role
from bakeoff_providers.errors import InputError

from tests.native_task import native_files, write_lineup

OWN = """
import ctypes, os, pathlib, signal, sys, threading, time
import numpy as np

def good(text, k):
    return ["1", "2"]
def exits(text, k):
    os._exit(3)
def crashes(text, k):
    ctypes.string_at(0)
def raises(text, k):
    raise TimeoutError("silence")
def interrupts(text, k):
    raise KeyboardInterrupt
def hangs(text, k):
    time.sleep(1000)
def hangs_once(text, k):
    if text == "lake":
        time.sleep(1000)
    return ["1"]
def changes(text, k):
    os.chdir("/")
    os.environ["BAKEOFF_CHANGED"] = "1"
    np.seterr(all="raise")
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    threading.Thread(target=time.sleep, args=(600,)).start()
    return ["1"]
def prints(text, k):
    print("\\x1b[2Jcleared")
    os.system("echo from a shell")
    return ["1"]
def sleeps(text, k):
    time.sleep(0.2)
    return ["1"]
def embed(texts):
    return [[len(text), text.count("e") + 1, 1.0] for text in texts]
class Counts:
    def __init__(self):
        self.calls = 0
    def search(self, text, k):
        self.calls += 1
        if self.calls == 2:
            time.sleep(1000)
        return [str(self.calls)]
"""
HEAD = 'measures = ["mrr"]\nrounds = 2\nquery_timeout = 0.2'


@pytest.fixture
def own(tmp_path: Path) -> Path:
    (tmp_path / "own.py").write_text(OWN)
    return tmp_path


def _retriever(own: Path, function: str) -> Retriever:
    made = create(RETRIEVERS, "function", None, {"file": str(own / "own.py"), "function": function})
    assert made is not None
    return made


def _run(own: Path, *functions: str) -> Outcome:
    rows = "".join(f'[[contender]]\nretriever = "file:own.py:{name}"\n' for name in functions)
    lineup = write_lineup(own, native_files(), head=HEAD, contenders=rows + '[[contender]]\nranker = "bm25"\n')
    return run(Lineup.read(lineup))


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        ("exits", "3"),
        ("crashes", "SIGSEGV"),
        ("raises", "TimeoutError"),
        ("interrupts", "KeyboardInterrupt"),
        ("hangs", "2 s"),
        ("missing", "'missing'"),
    ],
)
def test_what_ends_its_process_costs_its_row(own: Path, function: str, reason: str) -> None:
    outcome = _run(own, function)
    assert [row.contender.label for row in outcome.ran] == ["bm25"]
    (lost,) = outcome.not_run
    assert reason in failure_words(lost.failure)


def test_a_query_that_hangs_is_unanswered_and_the_others_count(own: Path) -> None:
    """Document 1 is the answer to q1; each of two rounds ends and starts a process."""
    outcome = _run(own, "hangs_once")
    assert outcome.scores["hangs_once"]["mrr"] == [1.0, 0.0, 0.0]
    (row,) = [row for row in summarise(outcome).rows if row.label == "hangs_once"]
    assert fact("unanswered", count=1, queries=3, seconds=0.2) in row.warnings


def test_a_child_that_hangs_time_and_again_is_given_up(own: Path) -> None:
    retriever = _retriever(own, "hangs")
    with limit_calls(0.1):
        for _ in range(MISSES - 1):
            with pytest.raises(NoAnswer):
                retriever.search("lake", 1)
        for _ in range(2):
            with pytest.raises(Ended):
                retriever.search("lake", 1)


def test_a_new_child_begins_anew(own: Path) -> None:
    retriever = _retriever(own, "Counts")
    with limit_calls(0.5):
        assert retriever.search("lake", 1)[0] == [("1", 1.0)]
        with pytest.raises(NoAnswer):
            retriever.search("lake", 1)
        assert retriever.search("lake", 1)[0] == [("1", 1.0)]
    retriever.close()


class Asleep(Faiss):
    """Takes vectors, and never says how many."""

    def count(self) -> int:
        """Sleeps."""
        time.sleep(1000)
        return 0


def test_a_store_that_was_filled_is_not_started_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(STORES.builtin, "asleep", f"{__name__}:Asleep")
    store = create(STORES, "asleep", None, {"dimensions": 2, "folder": tmp_path})
    assert store is not None
    store.add(["a"], np.eye(1, 2, dtype=np.float32))
    for _ in range(2):
        with limit_calls(0.1), pytest.raises(Ended):
            store.count()


def test_what_code_changes_stays_in_its_process(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BAKEOFF_CHANGED", raising=False)
    before = Path.cwd(), np.geterr(), signal.getsignal(signal.SIGUSR1), threading.active_count()
    children = psutil.Process().children(recursive=True)
    outcome = _run(own, "changes")
    assert [row.contender.label for row in outcome.ran] == ["changes", "bm25"]
    assert (Path.cwd(), np.geterr(), signal.getsignal(signal.SIGUSR1), threading.active_count()) == before
    assert "BAKEOFF_CHANGED" not in os.environ
    assert set(psutil.Process().children(recursive=True)) <= set(children)


def test_foreign_output_goes_to_standard_error_without_control_characters(
    own: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    _retriever(own, "prints").search("lake", 1)
    deadline = time.monotonic() + 10
    said = ""
    while "shell" not in said and time.monotonic() < deadline:
        out, err = capfd.readouterr()
        assert out == ""
        said += err
    assert "[2Jcleared\n" in said
    assert "\x1b" not in said


@pytest.mark.parametrize("isolate", ["true", "false"])
def test_output_of_code_in_this_process_goes_there_too(
    isolate: str, own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = f'[[contender]]\nretriever = "file:own.py:prints"\nisolate = {isolate}\n'
    run(Lineup.read(write_lineup(own, native_files(), head=HEAD, contenders=rows)))
    out, err = capsys.readouterr()
    assert out == ""
    assert "[2Jcleared\n" in err
    assert "\x1b" not in err


def test_figures_are_the_same_in_every_process(own: Path) -> None:
    contenders = "".join(
        f'[[contender]]\nlabel = "mine-{name}"\nprovider = "file:own.py:embed"\n'
        f'store = ["sqlite_vec", {{ name = "faiss", options = {{ index = "Flat" }} }}]\nisolate = {isolate}\n'
        for name, isolate in (("child", "true"), ("here", "false"))
    )
    head = 'measures = ["mrr", "ndcg@3"]\nrounds = 2'
    outcome = run(Lineup.read(write_lineup(own, native_files(), head=head, contenders=contenders)))
    assert outcome.not_run == []
    rankings = {row.contender.label: dict(row.rankings) for row in outcome.ran}
    for store in ("sqlite_vec", "faiss"):
        assert rankings[f"mine-child+{store}"] == rankings[f"mine-here+{store}"]
        assert outcome.scores[f"mine-child+{store}"] == outcome.scores[f"mine-here+{store}"]


def test_a_sample_for_training_reaches_the_child(tmp_path: Path) -> None:
    options = {"dimensions": 8, "folder": tmp_path, "index": "IVF4,Flat"}
    vectors = np.random.default_rng(1).normal(size=(400, 8)).astype(np.float32)
    ids = [str(number) for number in range(400)]
    hits = []
    for isolate in (True, False):
        store: Store = create(STORES, "faiss", isolate, options) or STORES.create("faiss", **options)
        store.expect(400, lambda count: vectors[:count])
        store.add(ids, vectors)
        store.build()
        hits.append(store.search(vectors[7], 5))
        store.discard()
    assert list(hits[0].ids) == list(hits[1].ids)
    assert list(hits[0].scores) == list(hits[1].scores)


def test_the_clock_runs_in_the_child(own: Path) -> None:
    """Starting anew is no part of a search."""
    retriever = _retriever(own, "sleeps")
    answer, nanoseconds = retriever.search("lake", 1)
    assert answer == [("1", 1.0)]
    assert nanoseconds >= 200_000_000
    provider = create(PROVIDERS, "own", None, {"file": str(own / "own.py"), "function": "embed"})
    assert provider is not None
    texts = ["a text"] * 20_000  # the way there and back takes far longer than counting letters
    start = time.perf_counter_ns()
    shown = time_call(lambda: provider.embed(texts, Role.DOCUMENT))[1]
    assert shown < time.perf_counter_ns() - start


def test_starting_anew_is_no_part_of_a_call(own: Path) -> None:
    (own / "slow.py").write_text(
        "import time\ndef embed(texts):\n    time.sleep(1000 if texts == ['hang'] else 0.05)\n    return [[1.0]]\n"
    )
    provider = create(PROVIDERS, "own", None, {"file": str(own / "slow.py"), "function": "embed"})
    assert provider is not None
    with limit_calls(0.2), pytest.raises(NoAnswer):
        provider.embed(["hang"], Role.QUERY)
    start = time.perf_counter_ns()
    shown = time_call(lambda: provider.embed(["lake"], Role.QUERY))[1]
    whole = time.perf_counter_ns() - start
    assert 50_000_000 <= shown < whole - 50_000_000  # a process takes longer than that to start
    provider.close()


def test_own_errors_arrive_with_their_parts(own: Path) -> None:
    with pytest.raises(InputError) as caught:
        _retriever(own, "missing")
    assert caught.value.file == (own / "own.py").resolve()
    with pytest.raises(Exception, match="silence") as raised:
        _retriever(own, "raises").search("lake", 1)
    assert type(raised.value).__name__ == "TimeoutError"


def test_what_is_not_ours_is_isolated_unless_the_line_up_says_otherwise(own: Path) -> None:
    assert is_foreign(RETRIEVERS.get("function"), {"file": "own.py", "function": "good"})
    assert not is_foreign(RETRIEVERS.get("http"), {"url": "http://localhost"})
    assert not is_foreign(STORES.get("sqlite_vec"), {})
    assert is_foreign(Path, {})
    options = {"file": str(own / "own.py"), "function": "good"}
    assert create(RETRIEVERS, "function", False, options) is None
    assert create(STORES, "faiss", None, {"dimensions": 2, "folder": own}) is None


@pytest.mark.parametrize(
    "row", ['retriever = "file:own.py:good"', 'ranker = "bm25"', 'provider = "fake"\nstore = "faiss"']
)
def test_the_setting_is_kept_with_the_result(row: str, own: Path) -> None:
    rows = f"[[contender]]\n{row}\nisolate = true\n"
    lineup = Lineup.read(write_lineup(own, native_files(), contenders=rows))
    assert [one["isolate"] for one in lineup.to_dict()["contenders"]] == [True]
    (own / "again.toml").write_text(lineup_text(lineup.to_dict()))
    assert Lineup.read(own / "again.toml").contenders == lineup.contenders


def test_a_child_ends_with_its_parent(own: Path) -> None:
    code = (
        f"import sys, time; sys.path[:] = {sys.path!r}\n"
        "from bakeoff.extensions.isolation.parts import create\n"
        "from bakeoff.search.retrievers import RETRIEVERS\n"
        f"part = create(RETRIEVERS, 'function', True, {{'file': {str(own / 'own.py')!r}, 'function': 'hangs'}})\n"
        "print('ready', flush=True)\n"
        "part.search('lake', 1)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "ready\n"
        (child,) = psutil.Process(parent.pid).children()
        parent.kill()
    psutil.wait_procs([child], timeout=10)
    assert not child.is_running()


def test_calls_of_a_hosted_adapter_are_made_at_the_same_time(own: Path) -> None:
    """Each call waits for the other one."""
    code = "import threading\nBOTH = threading.Barrier(2, timeout=20)\n"
    (own / "hosted.py").write_text(f"{code}def embed(texts):\n    BOTH.wait()\n    return [[1.0]]\n")
    provider = create(PROVIDERS, "own_hosted", None, {"file": str(own / "hosted.py"), "function": "embed"})
    assert provider is not None
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda text: provider.embed([text], Role.QUERY).vectors.tolist(), ["a", "b"]))
    assert answers == [[[1.0]], [[1.0]]]
    provider.close()


def test_ctrl_c_ends_the_wait_for_a_child_that_hangs(own: Path) -> None:
    retriever = _retriever(own, "hangs")
    threading.Timer(0.3, stopping.stop).start()
    start = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            retriever.search("lake", 1)
        retriever.close()
    finally:
        stopping.resume()
    assert time.monotonic() - start < 10  # of 1,000 s that it sleeps
