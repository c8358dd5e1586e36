"""Answers on disk: a model is paid for an answer once, and a killed run loses none that arrived."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import IO

import msgspec
import xxhash

from bakeoff.chat.base import Reply
from bakeoff.core.files import check_writable, write_json
from bakeoff.core.hashing import Identity, space_name, text_key

OLD, CHECKED = "*.jsonl", "*.answers"  # files of earlier versions have no checksums and are read as they are


class _Line(msgspec.Struct, frozen=True):
    """One answer: a torn line fits no shape, a damaged one not its checksum; both are left out."""

    key: str
    text: str
    prompt_tokens: int | None = None
    answer_tokens: int | None = None


class Answers:
    """The answers of one model. Each process appends to a file of its own, so nothing needs a lock."""

    def __init__(self, folder: Path, identity: Identity) -> None:
        self.folder = folder / space_name(identity)
        self._known: dict[str, Reply] = {}
        self._file: IO[bytes] | None = None
        self._sure = False
        if not self.folder.exists():
            write_json(self.folder / "identity.json", dict(identity))
        for file in sorted(self.folder.glob(OLD)):
            for line in file.read_bytes().splitlines():
                self._remember(line)
        for file in sorted(self.folder.glob(CHECKED)):
            for line in file.read_bytes().split(b"\n"):
                check, _, content = line.partition(b" ")
                if check == _checksum(content):
                    self._remember(content)

    def get(self, prompt: str, seed: int) -> Reply | None:
        """The answer that was given to this prompt under this seed, if any."""
        return self._known.get(_key(prompt, seed))

    def make_sure(self) -> None:
        """Before the first answer is paid for: that it can be kept."""
        if not self._sure:
            check_writable(self.folder, "make room, or set BAKEOFF_HOME to a folder on another disk")
            self._sure = True

    def put(self, prompt: str, seed: int, reply: Reply) -> None:
        """Appends one line with its checksum; it is on disk when this returns."""
        key = _key(prompt, seed)
        line = _Line(key, reply.text, reply.prompt_tokens, reply.answer_tokens)
        if self._file is None:
            name = f"{os.getpid()}-{secrets.token_hex(4)}.answers"
            self._file = (self.folder / name).open("xb", buffering=0)
        content = msgspec.json.encode(line)
        self._file.write(_checksum(content) + b" " + content + b"\n")
        self._known[key] = reply

    def close(self) -> None:
        """Ends this process's file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _remember(self, line: bytes) -> None:
        try:
            answer = msgspec.json.decode(line, type=_Line)
        except msgspec.DecodeError:
            return
        self._known[answer.key] = Reply(answer.text, answer.prompt_tokens, answer.answer_tokens)


def _checksum(content: bytes) -> bytes:
    return xxhash.xxh3_64_hexdigest(content).encode()


def _key(prompt: str, seed: int) -> str:
    return text_key(f"{seed}\0{prompt}").hex()
