"""A child process that holds one object, and calls to it that have a limit.

A call is a picklable function of the object. The clock runs in the child, around the function. What the child prints
comes out on standard error.
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

Work = Callable[[Any], Any]  # of the object; the first one makes it, out of None
Stage = Literal["embed", "search", "rerank"]

START = "import json, sys; threads, sys.path[:] = json.loads(sys.argv.pop()); from {} import main; main(threads)"
SLACK = 1.0  # seconds beyond a limit, for the way there and back
MISSES = 3  # calls in succession that end a child for good
CLOSING = 5.0  # seconds to let the object go
LONGEST_LINE = 1 << 16  # bytes of foreign output in one piece
AT_ONCE = 1 << 20  # bytes written between two looks at the clock
THREADS = 4  # calls that a run makes of a hosted provider at the same time
READABLE = ("bakeoff", "bakeoff_providers", "builtins", "collections", "msgspec", "numpy", "pathlib")
_FRAME = struct.Struct("<QQ")  # number and length of the message that follows


class Ended(BakeoffError):
    """The child process is gone, and with it what it held."""


class _Answer(NamedTuple):
    value: Any
    raised: bool
    nanoseconds: int


class _UnknownError(NamedTuple):
    """An error whose type only the child knows."""

    name: str
    text: str


def _value_of(answer: _Answer) -> Any:
    """What was returned; what was raised there is raised here, too."""
    if not answer.raised:
        return answer.value
    if isinstance(answer.value, _UnknownError):
        raise type(answer.value.name, (Exception,), {})(answer.value.text)
    raise answer.value


class Child:
    """The parent's side. A child that missed a limit is ended, and the next call starts another.

    `stage` is what its calls are timed as. One that holds what `change` told it can't be started again.
    """

    def __init__(self, make: Work, stage: Stage, *, threads: bool = False) -> None:
        self._make, self._stage, self._threads = make, stage, threads
        self._limit = call_limit() or TimeLimits().build
        self._lock = threading.RLock()
        self._missed, self._changed, self._over = 0, False, ""
        self._link: _Link | None = self._start()

    def change(self, work: Work) -> Any:
        """A call whose effect a new child would not have."""
        self._changed = True
        return self.call(work)

    def call(self, work: Work) -> Any:
        """What the function returns or raises in the child."""
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
        """Lets the object go, and ends the process."""
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
            if link.killed:  # by another thread, whose call missed its limit
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
                times = f", {self._missed} times in succession" if self._missed > 1 else ""
                self._over = f"no answer within {seconds:g} s{times}"
                raise Ended(self._over) from None


class _Link:
    """One process, the thread that reads its answers, and the one that passes on what it prints."""

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
        """Whether a call is under way, or was given up."""
        return bool(self._waiting)

    def ask(self, work: Work, seconds: float) -> _Answer:
        """Raises TimeoutError, or EOFError where the process is gone. Calls of hosted adapters count as bought."""
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
        """Ends it with all that it started."""
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
    """Answers hold values of our own types alone."""
    try:
        answer: _Answer = _AnswerReader(io.BytesIO(content)).load()
    except Exception as error:
        raise StoreError(f"its answer can't be read: {error}") from None
    return answer


def main(threads: bool) -> None:
    """The child's side. It ends with its parent, whatever the object is doing."""
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
