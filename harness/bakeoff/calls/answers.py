"""Answers on disk: a model is paid for an answer once, and a killed run loses none that arrived."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import msgspec
import xxhash
from bakeoff_providers import stopping
from bakeoff_providers.chat.base import Reply

from bakeoff.calls.key_index import keys_from
from bakeoff.calls.locks import WAIT, Claims
from bakeoff.core.files import check_writable, write_json
from bakeoff.core.hashing import Identity, space_name, text_key

OLD, CHECKED = "*.jsonl", "*.answers"  # files of earlier versions have no checksums and are read as they are
IDENTITY = "identity.json"


class _Line(msgspec.Struct, frozen=True):
    """One answer: a torn line fits no shape, a damaged one not its checksum; both are left out."""

    key: str
    text: str
    prompt_tokens: int | None = None
    answer_tokens: int | None = None


class AnswerCache:
    """The answers of one model. Each process appends to a file of its own; what it is asking for, it has claimed."""

    def __init__(self, folder: Path, identity: Identity) -> None:
        self.folder = folder / space_name(identity)
        self._known: dict[str, Reply] = {}
        self._file: IO[bytes] | None = None
        self._writable = False
        self._read: dict[Path, int] = {}  # bytes of each file that have been taken in
        self._lock = threading.Lock()
        self._asking: set[str] = set()  # claims are a process's: its threads are told apart by this
        self._claims = Claims(self.folder / "asking.lock")
        if not (self.folder / IDENTITY).exists():
            write_json(self.folder / IDENTITY, dict(identity))
        for file in sorted(self.folder.glob(OLD)):
            for line in file.read_bytes().splitlines():
                self._remember(line)
        self._refresh()

    def get(self, prompt: str, seed: int) -> Reply | None:
        """The answer that was given to this prompt under this seed, if any."""
        return self._known.get(_key(prompt, seed))

    def check_writable(self) -> None:
        """Before the first answer is paid for: that it can be kept."""
        if not self._writable:
            check_writable(self.folder, "make room, or set BAKEOFF_HOME to a folder on another disk")
            self._writable = True

    @contextlib.contextmanager
    def claimed(self, prompt: str, seed: int) -> Iterator[Reply | None]:
        """The answer, if another process or thread has asked meanwhile; otherwise nobody else asks within the block."""
        key = _key(prompt, seed)
        while not self._claim(key):
            stopping.sleep(WAIT)
        try:
            with self._lock:
                self._refresh()
            yield self._known.get(key)
        finally:
            with self._lock:
                self._claims.release(keys_from(bytes.fromhex(key)))
                self._asking.discard(key)

    def put(self, prompt: str, seed: int, reply: Reply) -> None:
        """Appends one line with its checksum; it is on disk when this returns."""
        key = _key(prompt, seed)
        line = _Line(key, reply.text, reply.prompt_tokens, reply.answer_tokens)
        if self._file is None:
            name = f"{os.getpid()}-{secrets.token_hex(4)}.answers"
            self._file = (self.folder / name).open("xb", buffering=0)
        content = msgspec.json.encode(line)
        _append(self._file, _checksum(content) + b" " + content + b"\n")
        self._read[Path(self._file.name)] = self._file.tell()
        self._known[key] = reply

    def close(self) -> None:
        """Ends this process's file and its claims."""
        self._claims.close()
        if self._file is not None:
            self._file.close()
            self._file = None

    def _claim(self, key: str) -> bool:
        with self._lock:
            if key in self._asking or not self._claims.take(keys_from(bytes.fromhex(key)))[0]:
                return False
            self._asking.add(key)
            return True

    def _refresh(self) -> None:
        """Takes in what has come since the last look; a line that has no end yet is read again."""
        for file in sorted(self.folder.glob(CHECKED)):
            begin = self._read.get(file, 0)
            with file.open("rb") as lines:
                if os.fstat(lines.fileno()).st_size <= begin:
                    continue
                lines.seek(begin)
                data = lines.read()
            self._read[file] = begin + data.rfind(b"\n") + 1
            for line in data.split(b"\n"):
                check, _, content = line.partition(b" ")
                if check == _checksum(content):
                    self._remember(content)

    def _remember(self, line: bytes) -> None:
        try:
            answer = msgspec.json.decode(line, type=_Line)
        except msgspec.DecodeError:
            return
        self._known[answer.key] = Reply(answer.text, answer.prompt_tokens, answer.answer_tokens)


def _append(file: IO[bytes], line: bytes) -> None:
    """All of the line or nothing: a disk that is nearly full takes a part, and the next line would be torn with it."""
    begin, rest = file.tell(), memoryview(line)
    try:
        while rest:
            written = file.write(rest)
            if not written:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), file.name)
            rest = rest[written:]
    except BaseException:
        with contextlib.suppress(OSError):
            file.truncate(begin)
            file.seek(begin)
        raise


def _checksum(content: bytes) -> bytes:
    return xxhash.xxh3_64_hexdigest(content).encode()


def _key(prompt: str, seed: int) -> str:
    return text_key(f"{seed}\0{prompt}").hex()
