"""Chat answers on disk: each is paid for once, and a killed run loses none that arrived."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import xxhash
from bakeoff_providers.chat.base import Reply

from bakeoff.calls.key_index import Keys, Places, keys_of
from bakeoff.calls.locks import Claims
from bakeoff.core.files import check_writable, write_all, write_json
from bakeoff.core.hashing import Identity, space_name

OLD, CHECKED = "*.jsonl", "*.answers"  # files of earlier versions have no checksums
IDENTITY = "identity.json"


class _StoredAnswer(msgspec.Struct, frozen=True):
    """One answer. Torn lines fail to decode, damaged ones fail their checksum; both are skipped."""

    key: str
    text: str
    prompt_tokens: int | None = None
    answer_tokens: int | None = None


class AnswerCache:
    """The answers of one model. Each process appends to its own file and claims what it requests."""

    def __init__(self, folder: Path, identity: Identity) -> None:
        self.folder = folder / space_name(identity)
        self.claims = Claims(self.folder / "asking.lock")
        self._places: dict[bytes, int] = {}
        self._replies: list[Reply] = []
        self._file: int | None = None
        self._own = self.folder / f"{os.getpid()}-{secrets.token_hex(4)}.answers"
        self._writable = False
        self._read: dict[Path, int] = {}  # bytes read of each file
        if not (self.folder / IDENTITY).exists():
            write_json(self.folder / IDENTITY, dict(identity))
        for file in sorted(self.folder.glob(OLD)):
            for line in file.read_bytes().splitlines():
                self._remember(line)
        self.refresh()

    def find(self, keys: Keys) -> Places:
        """The place of each key's answer; −1 if missing."""
        return np.array([self._places.get(key.tobytes(), -1) for key in keys], dtype=np.int64)

    def take(self, places: Places) -> list[Reply]:
        """The answers at these places."""
        return [self._replies[place] for place in places]

    def check_writable(self, _count: int = 1) -> None:
        """Checks that answers can be stored, before the first one is paid for."""
        if not self._writable:
            check_writable(self.folder, "make room, or set BAKEOFF_HOME to a folder on another disk")
            self._writable = True

    def put(self, _prompts: Sequence[str], replies: Sequence[Reply], _tokens: int | None, keys: Keys) -> None:
        """Appends one line with its checksum per answer. They are on disk when this returns."""
        if self._file is None:
            self._file = os.open(self._own, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
        for key, reply in zip(keys, replies, strict=True):
            answer = _StoredAnswer(key.tobytes().hex(), reply.text, reply.prompt_tokens, reply.answer_tokens)
            content = msgspec.json.encode(answer)
            line, end = _checksum(content) + b" " + content + b"\n", self._read.get(self._own, 0)
            write_all(self._file, memoryview(line), end)
            self._read[self._own] = end + len(line)
            self._add(answer)

    def close(self) -> None:
        """Closes this process's file and its claims."""
        self.claims.close()
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def refresh(self) -> None:
        """Reads what was added since the last call. An unfinished line is read again later."""
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

    def _remember(self, content: bytes) -> None:
        with contextlib.suppress(msgspec.DecodeError, ValueError):
            self._add(msgspec.json.decode(content, type=_StoredAnswer))

    def _add(self, line: _StoredAnswer) -> None:
        """The last answer to a key counts."""
        key = bytes.fromhex(line.key)
        self._replies.append(Reply(line.text, line.prompt_tokens, line.answer_tokens))
        self._places[key] = len(self._replies) - 1


def _checksum(content: bytes) -> bytes:
    return xxhash.xxh3_64_hexdigest(content).encode()


def question_keys(prompt: str, seed: int) -> Keys:
    """The key of one answer. It includes the seed, which tells answers to the same prompt apart."""
    return keys_of([f"{seed}\0{prompt}"])
