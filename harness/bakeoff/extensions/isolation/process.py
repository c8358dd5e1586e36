"""A child process that holds one object, and calls to it with a time limit.

A call is a picklable function of the object. The clock runs in the child, around the function. The child's
output goes to standard error.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import pickle
import queue
import select
import signal
import struct
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any, Literal, NamedTuple

from bakeoff_providers import stopping
from bakeoff_providers.errors import BakeoffError, StoreError
from bakeoff_providers.secrets import scrub, without_secrets

from bakeoff.core.clock import TimeLimits, call_limit, leave_out
from bakeoff.core.printable import printable
from bakeoff.search.answer import NoAnswer

Work = Callable[[Any], Any]  # takes the object; the first one creates it from None
Stage = Literal["embed", "search", "rerank"]

START = "import json, sys; threads, sys.path[:] = json.loads(sys.argv.pop()); from {} import main; main(threads)"
SLACK = 1.0  # seconds added to a limit for the round trip
MISSES = 3  # consecutive timeouts after which a child is not restarted
CLOSING = 5.0  # seconds to close the object
LONGEST_LINE = 1 << 16  # bytes of the child's output per read
AT_ONCE = 1 << 20  # bytes written between two checks of the clock
THREADS = 4  # concurrent calls of a run to a hosted provider
READABLE = ("bakeoff", "bakeoff_providers", "builtins", "collections", "msgspec", "numpy", "pathlib")
_FRAME = struct.Struct("<QQ")  # number and length of the message that follows


class Ended(BakeoffError):
    """The child process ended, and its object is lost."""


class _Answer(NamedTuple):
    value: Any
    raised: bool
    nanoseconds: int


class _UnknownError(NamedTuple):
    """An error whose type only the child knows."""

    name: str
    text: str


def _value_of(answer: _Answer) -> Any:
    """The returned value; re-raises the child's exception."""
    if not answer.raised:
        return answer.value
    if isinstance(answer.value, _UnknownError):
        raise type(answer.value.name, (Exception,), {})(answer.value.text)
    raise answer.value


class Child:
    """The parent's side. A child that exceeds a limit is killed, and the next call starts another.

    `stage` is the name under which calls are timed. After `change`, a child can't be restarted.
    """

    def __init__(self, make: Work, stage: Stage, *, threads: bool = False) -> None:
        self._make, self._stage, self._threads = make, stage, threads
        self._limit = call_limit() or TimeLimits().build
        self._lock = threading.RLock()
        self._missed, self._changed, self._over = 0, False, ""
        self._link: _Link | None = self._start()

    def change(self, work: Work) -> Any:
        """Calls a function whose effect a new child would lack."""
        self._changed = True
        return self.call(work)

    def call(self, work: Work) -> Any:
        """Returns or raises what the function does in the child."""
        with self._lock:
            if self._over:
                raise Ended(self._over)
            link = self._link = self._link or self._start()
        start = time.perf_counter_ns()
        answer = self._ask(link, work, call_limit() or self._limit)
        leave_out(time.perf_counter_ns() - start - answer.nanoseconds)
        self._missed = 0
        return _value_of(answer)

    def close(self, work: Work) -> None:
        """Closes the object and ends the process."""
        with self._lock:
            link, self._link, self._over = self._link, None, self._over or "it was closed"
        if link is not None:
            if not link.busy:
                with contextlib.suppress(TimeoutError, EOFError, StoreError, KeyboardInterrupt):
                    link.ask(work, CLOSING)
            link.kill()

    def _start(self) -> _Link:
        start = time.perf_counter_ns()
        link = _Link(threads=self._threads)
        try:
            _value_of(self._ask(link, self._make, self._limit))
        except BaseException:
            link.kill()
            raise
        finally:
            leave_out(time.perf_counter_ns() - start)
        weakref.finalize(self, link.kill)
        return link

    def _ask(self, link: _Link, work: Work, seconds: float) -> _Answer:
        try:
            return link.ask(work, seconds)
        except TimeoutError:
            self._give_up(link, seconds)
            raise NoAnswer(self._stage, seconds) from None
        except EOFError:
            if link.killed:  # by another thread, whose call timed out
                raise NoAnswer(self._stage, seconds) from None
            self._over = f"its process ended: {link.ending()}"
            raise Ended(self._over) from None

    def _give_up(self, link: _Link, seconds: float) -> None:
        link.kill()
        with self._lock:
            if self._link is not link:  # another thread was first, or it was never made
                return
            self._link, self._missed = None, self._missed + 1
            if self._changed or self._missed >= MISSES:
                times = f", {self._missed} times in a row" if self._missed > 1 else ""
                self._over = f"no answer within {seconds:g} s{times}"
                raise Ended(self._over) from None


class _Link:
    """One process, with a thread that reads its answers and one that forwards its output."""

    def __init__(self, *, threads: bool) -> None:
        start = [sys.executable, "-c", START.format(__name__), json.dumps([threads, sys.path])]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(start, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True)
        assert self._process.stdin
        assert self._process.stdout
        assert self._process.stderr
        self._requests, self._answers, self._output = self._process.stdin, self._process.stdout, self._process.stderr
        os.set_blocking(self._requests.fileno(), False)
        self._writable = select.poll()
        self._writable.register(self._requests.fileno(), select.POLLOUT)
        self._numbers, self._writing = count(), threading.Lock()
        self._waiting: dict[int, queue.SimpleQueue[bytes | None]] = {}
        self._ended, self.killed, self._bought = False, False, threads
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._read, self._pass_on)]
        for thread in self._threads:
            thread.start()

    @property
    def busy(self) -> bool:
        """Whether a call is running or was abandoned."""
        return bool(self._waiting)

    def ask(self, work: Work, seconds: float) -> _Answer:
        """Sends a call. Raises TimeoutError, or EOFError if the process ended. Hosted calls count as paid."""
        until, number, slot = time.monotonic() + seconds + SLACK, next(self._numbers), queue.SimpleQueue[bytes | None]()
        self._waiting[number] = slot
        content = pickle.dumps(work)
        with self._writing:
            self._send(_FRAME.pack(number, len(content)) + content, until)
        with stopping.under_way(slot, bought=self._bought):
            while not self._ended or number not in self._waiting:
                try:
                    answer = slot.get(timeout=min(stopping.STEP, max(0.0, until - time.monotonic())))
                except queue.Empty:
                    pass
                except KeyboardInterrupt:
                    if not (self._bought and stopping.is_stopped()):
                        raise
                else:
                    if answer is None:
                        break
                    return _read_answer(answer)
                if stopping.is_over(bought=self._bought):
                    raise KeyboardInterrupt
                if time.monotonic() >= until:
                    raise TimeoutError
        raise EOFError

    def ending(self) -> str:
        """How the process ended."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(SLACK)
        code = self._process.returncode
        self.kill()
        if code is None or code >= 0:
            return "it closed its pipe" if code is None else f"exit code {code}"
        return f"signal {signal.Signals(-code).name}"

    def kill(self) -> None:
        """Kills the process and its children."""
        self.killed = True
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        for thread in self._threads:
            thread.join(SLACK)
        for stream in (self._requests, self._answers, self._output):
            with contextlib.suppress(OSError):
                stream.close()

    def _send(self, content: bytes, until: float) -> None:
        left = memoryview(content)
        while left:
            if self._writable.poll(1000 * stopping.STEP):
                try:
                    left = left[os.write(self._requests.fileno(), left[:AT_ONCE]) :]
                except (BrokenPipeError, ValueError):
                    raise EOFError from None
            elif time.monotonic() >= until:
                raise TimeoutError

    def _read(self) -> None:
        while len(head := self._answers.read(_FRAME.size)) == _FRAME.size:
            number, length = _FRAME.unpack(head)
            content = self._answers.read(length)
            if slot := self._waiting.pop(number, None):
                slot.put(content if len(content) == length else None)
        self._ended = True
        for slot in list(self._waiting.values()):
            slot.put(None)

    def _pass_on(self) -> None:
        for line in iter(lambda: self._output.readline(LONGEST_LINE), b""):
            sys.stderr.write(printable(without_secrets(line.decode(errors="replace"))))


class _AnswerReader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if module.partition(".")[0] not in READABLE:
            raise pickle.UnpicklingError(f"it is a {module}.{name}")
        return super().find_class(module, name)


def _read_answer(content: bytes) -> _Answer:
    """Unpickles an answer, which may hold only our own types."""
    try:
        answer: _Answer = _AnswerReader(io.BytesIO(content)).load()
    except Exception as error:
        raise StoreError(f"its answer can't be read: {error}") from None
    return answer


def main(threads: bool) -> None:
    """The child's main loop. It ends when the parent does, even during a call."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True, errors="replace")
    jobs, writing = queue.SimpleQueue[tuple[int, bytes]](), threading.Lock()

    def take() -> None:
        while len(head := requests.read(_FRAME.size)) == _FRAME.size:
            number, length = _FRAME.unpack(head)
            jobs.put((number, requests.read(length)))
        os._exit(0)

    def work(number: int, content: bytes, held: Any) -> Any:
        value, raised, start = None, False, time.perf_counter_ns()
        try:
            function = pickle.loads(content)
            start = time.perf_counter_ns()
            value = function(held)
        except BaseException as error:
            value, raised = _pack(error), True
        took = time.perf_counter_ns() - start
        try:
            answer = pickle.dumps(_Answer(value if raised or held is not None else None, raised, took))
        except Exception as error:
            answer = pickle.dumps(_Answer(_pack(error), True, took))
        with writing:
            answers.write(_FRAME.pack(number, len(answer)) + answer)
            answers.flush()
        return value

    threading.Thread(target=take, daemon=True).start()
    held = work(*jobs.get(), None)
    with ThreadPoolExecutor(THREADS) as pool:
        while True:
            number, content = jobs.get()
            if threads:
                pool.submit(work, number, content, held)
            else:
                work(number, content, held)


def _pack(error: BaseException) -> BaseException | _UnknownError:
    """Errors of ours as they are; of others their name and text, without secrets."""
    try:
        text = str(error)
        if isinstance(error, BakeoffError) and text == without_secrets(text):
            _read_answer(pickle.dumps(error))
            return error
        if isinstance(error, BakeoffError):
            return StoreError(without_secrets(text))
        return _UnknownError(type(error).__name__, scrub(text))
    except Exception:
        return _UnknownError(type(error).__name__, "")
