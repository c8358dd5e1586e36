"""Reading user files and writing results. Errors name the place; writes are atomic.

Temporary files go to the system's temporary folder (TMPDIR).
"""

from __future__ import annotations

import codecs
import contextlib
import errno
import gzip
import io
import os
import re
import shutil
import stat
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import msgspec
from bakeoff_providers.errors import BakeoffError, InputError
from bakeoff_providers.files import draft_of, remove_drafts, replacing, writing
from bakeoff_providers.options import misfit

from bakeoff.core.progress import Advance, steps

T = TypeVar("T")
TRIAL_BYTES = 1 << 20  # bytes that must be writable

_UNQUOTED = re.compile(r"""(?P<key>[\w.-]+) *= *(?P<value>[^\s"'\[{#=][^"'\[\]{}#]*)(#.*)?""")
_UP_TO_COMMENT = re.compile(rb'((?:[^"/]++|"(?:[^"\\]++|\\.)*+"?|/(?!/))*+)//[^\r\n]*+', re.DOTALL)
_SHOWN = 80  # characters shown of a bad line

_LINES_AT_ONCE = _MEGABYTE = 1 << 20  # bytes


def read_bytes(path: Path) -> bytes:
    """The file's content. A missing or unreadable file is an InputError."""
    try:
        if not (path.is_file() or path.is_dir()) and path.exists():
            raise InputError("is neither a file nor a folder", file=path, remedy="name a file")
        return path.read_bytes()
    except FileNotFoundError:
        raise InputError("no such file", file=path, remedy="check the path") from None
    except OSError as error:
        raise InputError(f"can't be read: {error.strerror}", file=path) from None
    except ValueError:
        raise InputError("no file has a null byte in its name", file=path, remedy="check the path") from None


def file_exists(path: Path) -> bool:
    """Like `path.exists()`, but an impossible name, such as one that is too long, is an InputError."""
    try:
        return path.exists()
    except OSError as error:
        raise InputError(error.strerror or str(error), file=path) from None


def read_text(path: Path) -> str:
    """The whole file as text, without a byte order mark."""
    return _utf8(path).decode()


def _utf8(path: Path) -> bytes:
    data = read_bytes(path).removeprefix(codecs.BOM_UTF8)
    try:
        data.decode()
    except UnicodeDecodeError as error:
        raise InputError(f"is not UTF-8 (byte {error.start})", file=path, remedy="save it as UTF-8") from None
    return data


def first_wrong_byte(path: Path) -> int | None:
    """The offset after a byte order mark where a plain or gzipped file stops being UTF-8. Reads in blocks."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    read = 0
    with open_unpacked(path) as stream:
        while True:
            block = stream.read(_MEGABYTE)
            waiting = len(decoder.getstate()[0])  # bytes of a character cut by the block's end
            try:
                decoder.decode(block, final=not block)
            except UnicodeDecodeError as error:
                return read - waiting + error.start
            if not block:
                return None
            read += len(block)


@contextlib.contextmanager
def open_unpacked(path: Path) -> Iterator[BinaryIO]:
    """Opens a plain or gzipped file for reading in pieces. Read errors become InputErrors."""
    try:
        with _open_with_progress(path) as file:
            packed = file.peek(2)[:2] == b"\x1f\x8b"
            stream = io.BufferedReader(gzip.GzipFile(fileobj=file)) if packed else file
            if stream.peek(3)[:3] == b"\xef\xbb\xbf":
                stream.read(3)
            yield stream
    except FileNotFoundError:
        raise InputError("no such file", file=path, remedy="check the path") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"is damaged gzip ({error})", file=path, remedy="fetch or pack it again") from None
    except OSError as error:
        raise InputError(f"can't be read: {error.strerror}", file=path) from None


@contextlib.contextmanager
def _open_with_progress(path: Path) -> Iterator[io.BufferedReader]:
    """Opens a file and reports progress while it is read."""
    check_regular(path)
    with _ProgressFile(path) as raw, steps(f"{path.name}: MB read", -(-path.stat().st_size // _MEGABYTE)) as advance:
        raw.advance = advance
        yield io.BufferedReader(raw, _MEGABYTE)


def check_regular(path: Path) -> None:
    """Refuses a FIFO or a device, which may never end, unless it is this process's own pipe."""
    kind, on_purpose = path.stat().st_mode, str(path).startswith(("/dev/fd/", "/dev/stdin", "/proc/self/fd/"))
    if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind) and not on_purpose:
        raise InputError("is not a regular file", file=path, remedy="name a file; a pipe is - or /dev/stdin")


class _ProgressFile(io.FileIO):
    """A file that reports how much of it was read."""

    advance: Advance | None = None
    _bytes = 0

    def readinto(self, buffer: Any) -> int | None:
        """Reads like any file; each megabyte is one step."""
        count = super().readinto(buffer)
        before, self._bytes = self._bytes, self._bytes + (count or 0)
        if self.advance is not None:
            self.advance(self._bytes // _MEGABYTE - before // _MEGABYTE)
        return count


def read_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Numbered lines of a plain or gzipped file, one by one, without blank lines."""
    with open_unpacked(path) as stream:
        for number, line in enumerate(stream, start=1):
            if not line.isspace():
                yield number, line.removesuffix(b"\n")


def read_json_lines(path: Path, shape: type[T]) -> Iterator[tuple[int, T]]:
    """Numbered values of JSON Lines, plain or gzipped. Errors name the line."""
    for first, values in read_json_blocks(path, shape):
        yield from enumerate(values, start=first)


def read_json_blocks(path: Path, shape: type[T]) -> Iterator[tuple[int, list[T]]]:
    """JSON Lines in blocks: the number of the first line, and the values."""
    decode = msgspec.json.Decoder(shape).decode
    with open_unpacked(path) as stream:
        number = 1
        while lines := stream.readlines(_LINES_AT_ONCE):
            values: list[T] | None = None
            with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                values = list(map(decode, lines))
            if values is not None:
                yield number, values
            else:  # blank lines fail too, so check line by line
                for at, line in enumerate(lines, start=number):
                    if not line.isspace():
                        yield at, [_json_line(path, at, line.removesuffix(b"\n"), shape)]
            number += len(lines)


def _json_line(path: Path, number: int, line: bytes, shape: type[T]) -> T:
    try:
        try:
            return msgspec.json.decode(line, type=shape)
        except msgspec.ValidationError:
            raise
        except msgspec.DecodeError:
            if (lenient := _with_nan(line)) is None:
                raise
            return msgspec.convert(lenient, shape)
    except msgspec.ValidationError as error:
        wrong = misfit(error, shape)
        place = f"line {number}, {wrong.place}" if wrong.place else f"line {number}"
        raise InputError(wrong.problem, file=path, place=place, remedy=wrong.remedy) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"is not valid JSON: {error}", file=path, place=f"line {number}") from None
    except RecursionError:
        raise InputError("is nested too deeply", file=path, place=f"line {number}") from None


def _with_nan(line: bytes) -> Any:
    """A line with NaN or Infinity as Python's json reads it; None if it is not JSON."""
    if b"NaN" not in line and b"Infinity" not in line:
        return None
    import json

    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def check_keys_once(path: Path) -> None:
    """Reject objects with duplicate keys; JSON parsers silently keep only one."""
    import json

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        content = dict(pairs)
        if len(content) < len(pairs):
            ((twice, _),) = Counter(key for key, _ in pairs).most_common(1)
            raise InputError(f"{twice!r} is there twice", file=path, remedy="put what belongs to it into one place")
        return content

    with contextlib.suppress(ValueError, RecursionError):  # reported by whoever reads the content
        json.loads(_without_comments(_utf8(path)), object_pairs_hook=once)


def read_json(path: Path, shape: type[T]) -> T:
    """Decodes JSON with `//` comments into a typed shape. Errors name the place."""
    return decode_json(path, lambda data: msgspec.json.decode(data, type=shape), shape)


def decode_json(path: Path, decode: Callable[[bytes | bytearray], T], shape: type[T]) -> T:
    """Like `read_json`, with a given decoder. Comments are removed only if the file is not valid JSON."""

    def decode_commented(data: bytes) -> T:
        try:
            return decode(data)
        except msgspec.ValidationError:
            raise
        except msgspec.DecodeError:
            if (uncommented := _without_comments(data)) == data:
                raise
            return decode(uncommented)

    return _decode(path, decode_commented, "JSON", shape)


def _without_comments(data: bytes) -> bytes | bytearray:
    """Replaces comments by blanks, so that offsets stay the same. Inside a string, `//` is text."""
    if b"//" not in data:
        return data
    blanked = bytearray(data)
    match = _UP_TO_COMMENT.match(data)
    while match:
        blanked[match.end(1) : match.end()] = b" " * (match.end() - match.end(1))
        match = _UP_TO_COMMENT.match(data, match.end())
    return blanked


def read_toml(path: Path, shape: type[T], change: Callable[[dict[str, Any]], Any] = dict) -> T:
    """Decodes TOML into a typed shape, after applying `change`. Errors name the line or the field."""
    import tomllib

    def decode(data: bytes) -> T:
        try:
            content = tomllib.loads(data.decode())
        except tomllib.TOMLDecodeError as error:
            line = _line_of(str(error), data)
            shown = f": {line[:_SHOWN]}" if line else ""
            raise InputError(f"is not valid TOML: {error}{shown}", file=path, remedy=_toml_remedy(line)) from None
        except ValueError as error:  # a number with more digits than Python reads
            raise InputError(f"is not valid TOML: {error}", file=path, remedy="write a smaller number") from None
        return msgspec.convert(change(content), type=shape)

    return _decode(path, decode, "TOML", shape)


def _decode(path: Path, decode: Callable[[bytes], T], language: str, shape: type[T]) -> T:
    data = _utf8(path)
    try:
        return decode(data)
    except msgspec.ValidationError as error:
        raise misfit(error, shape, file=path) from None
    except msgspec.DecodeError as error:
        raise InputError(
            f"is not valid {language}: {_with_line(str(error), data)}", file=path, remedy=f"fix the {language}"
        ) from None
    except RecursionError:
        raise InputError(f"is {language} that is nested too deeply", file=path, remedy="use fewer levels") from None


def _line_of(problem: str, data: bytes) -> str:
    """The line that a TOML error names."""
    place = re.search(r"at line (\d+)", problem)
    return data.decode().splitlines()[int(place[1]) - 1].strip() if place else ""


def _toml_remedy(line: str) -> str:
    """The likely remedy: usually a string without quotes, or a word in the wrong case."""
    given = _UNQUOTED.fullmatch(line)
    if given is None:
        return "fix the TOML"
    value = given["value"].strip()
    if value.lower() in ("true", "false"):
        return f"write {given['key']} = {value.lower()}"
    return f'text needs quotes: {given["key"]} = "{value}"'


def _with_line(problem: str, data: bytes) -> str:
    """Adds the line number, since msgspec names only a byte."""
    head, marker, number = problem.rpartition("(byte ")
    if not marker or not number.rstrip(")").isdigit():
        return problem
    offset = int(number.rstrip(")"))
    line = data[:offset].count(b"\n") + 1
    return f"{head}(line {line})"


def check_writable(folder: Path, remedy: str = "choose another --out") -> None:
    """Checks that files can be created in a folder, before anything is requested or paid for."""
    with writing(folder):
        nearest = next(part for part in (folder.absolute(), *folder.absolute().parents) if part.exists())
        if not nearest.is_dir():
            raise InputError("is not a folder", file=nearest, remedy=remedy)
        with tempfile.TemporaryFile(dir=nearest) as file:
            file.write(bytes(TRIAL_BYTES))


def write_atomic(path: Path, content: str | bytes) -> None:
    """Writes all or nothing: a reader never sees half a file. It is on disk when this returns."""
    write_parts(path, [content])


def write_parts(path: Path, parts: Iterable[str | bytes]) -> None:
    """Like `write_atomic`, from parts, so that a long text is never held as a whole."""
    with replacing(path) as part, part.open("wb") as file:
        for content in parts:
            file.write(content.encode() if isinstance(content, str) else content)
        file.flush()
        os.fsync(file.fileno())


def write_folder(folder: Path, fill: Callable[[Path], None]) -> Path:
    """A folder that appears once `fill` has written all of it. If the name is taken, it gets a number."""
    with ExitStack() as stack:
        with writing(folder):
            folder.parent.mkdir(parents=True, exist_ok=True)
            remove_drafts(folder.parent, below=1)  # pages of results are drawn in their folders
            draft = stack.enter_context(draft_of(folder, Path.mkdir))
        try:
            with writing(folder):
                fill(draft)
            for number in count(1):
                target = folder if number == 1 else folder.with_name(f"{folder.name}-{number}")
                with contextlib.suppress(OSError):
                    if not target.exists():
                        return draft.rename(target)
                if not target.exists():
                    draft.rename(target)  # the name is not the problem, so raise
            raise AssertionError
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise


def write_json(path: Path, content: Any) -> None:
    """Indented JSON, so that diffs are readable."""
    write_atomic(path, msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n")


def write_all(handle: int, data: memoryview, offset: int) -> None:
    """Writes at an offset, over what a failed write left behind."""
    while len(data):
        done = os.pwrite(handle, data, offset)
        data, offset = data[done:], offset + done


TEMPORARY = "make room, or set TMPDIR to a folder on another disk"
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
_WORDS = ("no space left", "disk is full", "disk full", "not enough space")  # wording of the engines' own errors


@contextmanager
def explain_full_disk(folder: Path | None = None, remedy: str = TEMPORARY) -> Iterator[None]:
    """Turns a disk-full error into one with a remedy. Without a folder, it is about the temporary one."""
    try:
        yield
    except BakeoffError:
        raise
    except Exception as error:
        said = str(error).lower()
        if not (isinstance(error, OSError) and error.errno in _FULL) and not any(words in said for words in _WORDS):
            raise
        problem = f"can't be written ({getattr(error, 'strerror', None) or error})"
        raise InputError(problem, file=folder or tempfile.gettempdir(), remedy=remedy) from error


def check_free_space(folder: Path, needed: int, what: str, remedy: str = TEMPORARY) -> None:
    """Refuses a write that can't fit, before it starts."""
    free = shutil.disk_usage(folder).free
    if free < needed:
        problem = f"{needed / 1e6:,.0f} MB of {what} need to be written, {free / 1e6:,.0f} MB are free"
        raise InputError(problem, file=folder, remedy=remedy)
