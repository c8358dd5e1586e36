"""Folders shared by all machines of a job: a path, a file:// URL, or any fsspec URL such as s3://bucket/run."""

from __future__ import annotations

import contextlib
import hashlib
import secrets
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from bakeoff_providers.errors import InputError, Unavailable
from bakeoff_providers.files import replacing, try_lock
from bakeoff_providers.registry import missing_modules
from bakeoff_providers.weights import home

from bakeoff.core.progress import steps

MODULES, EXTRA = ("fsspec",), "remote"
AT_ONCE = 8  # concurrent transfers
_LAST = (".manifest", ".json")  # sent last, because they make other files count
_GROWING = (".f32", ".manifest")  # files of a shard, which only grow


class SharedFolder:
    """A folder by its address. A remote folder has a local copy, which is mapped and read."""

    def __init__(self, address: str) -> None:
        self.address = address.rstrip("/")
        self.remote = "://" in address and not address.startswith("file://")
        self._system: Any = None
        self._made: set[str] = set()  # remote folders that this process has made
        if self.remote:
            name = hashlib.blake2b(self.address.encode(), digest_size=8).hexdigest()
            self.path = (home() / "shards" / name).resolve()
            self._system, self._root = _open(self.address)
        else:
            self.path = Path(unquote(urlsplit(address).path) if address.startswith("file://") else address)

    def fetch(self, below: str = "") -> Path:
        """The local folder, with everything that the remote one holds below this name."""
        self.fetch_listed(below)
        return self.path / below

    def fetch_listed(self, below: str = "") -> frozenset[str] | None:
        """Fetches what is below this name and returns the list of files; None if they are on this machine.

        The copy may hold more: files removed there, and files not sent yet.
        """
        if not self.remote:
            return None
        root = "/".join(filter(None, (self._root, below)))
        with _name_failures(self.address), self._alone():
            sizes = {name[len(root) :].lstrip("/"): length for name, length in self._sizes(root).items()}
            lacking = [name for name, length in sizes.items() if _lacks(self.path / below / name, length)]
            self._get([f"{below}/{name}" if below else name for name in lacking])
        return frozenset(sizes)

    def fetch_files(self, names: Iterable[str]) -> None:
        """Fetches the files that the copy lacks. One process of this machine does it while the others wait."""
        wanted = [name for name in names if not (self.path / name).is_file()] if self.remote else []
        if wanted:
            with _name_failures(self.address), self._alone():
                self._get([name for name in wanted if not (self.path / name).is_file()])

    def _get(self, names: list[str]) -> None:
        """Several at a time. Files that make other files count come last."""

        def get(name: str) -> None:
            with replacing(self.path / name) as part:  # readers always see a whole file
                self._system.get_file(f"{self._root}/{name}", str(part))

        with ThreadPoolExecutor(AT_ONCE) as pool, steps("files fetched", len(names)) as advance:
            for last in (False, True):
                for _ in pool.map(get, [name for name in names if name.endswith(_LAST) == last]):
                    advance(1)

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Exclusive access to this copy among the processes of this machine."""
        self.path.mkdir(parents=True, exist_ok=True)
        with (self.path / ".fetching.lock").open("w") as file:
            with contextlib.suppress(ImportError, OSError):  # without locks, a file may be fetched twice
                import fcntl

                fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def send(self, folder: Path) -> None:
        """Sends new and longer files below a folder of the copy. Files that make other files count go last.

        A shard that another process is writing is sent by that process.
        """
        if not self.remote:
            return
        files = [file for file in folder.rglob("*") if file.is_file() and not file.name.endswith(".lock")]
        growing = {file.with_suffix("") for file in files if file.suffix == _GROWING[1] and _is_being_written(file)}
        files = [file for file in files if file.with_suffix("") not in growing]
        with _name_failures(self.address):
            there = self._sizes(self._there(folder))
        self.send_files([file for file in files if there.get(self._there(file)) != file.stat().st_size])

    def send_files(self, files: Iterable[Path]) -> None:
        """Sends these files of the copy, even if they exist there."""
        if not self.remote:
            return
        ordered = sorted(files, key=lambda file: file.name.endswith(_LAST))
        with _name_failures(self.address), steps("files sent", len(ordered)) as advance:
            for file in ordered:
                there = self._there(file)
                if (folder := there.rpartition("/")[0]) not in self._made:
                    self._system.makedirs(folder, exist_ok=True)
                    self._made.add(folder)
                self._system.put_file(str(file), there)
                advance(1)

    @contextlib.contextmanager
    def mark(self) -> Iterator[str]:
        """Creates a marker file, visible to everyone who sees this folder, within the block. Yields its path or URL."""
        name = f".seen-{secrets.token_hex(4)}"
        self.path.mkdir(parents=True, exist_ok=True)
        here = self.path / name
        here.touch()
        try:
            self.send_files([here])
            yield f"{self.address}/{name}" if self.remote else str(here.resolve())
        finally:
            here.unlink(missing_ok=True)
            if self.remote:
                with _name_failures(self.address):
                    self._system.rm_file(self._there(here))

    def _there(self, here: Path) -> str:
        return self._root if here == self.path else f"{self._root}/{here.relative_to(self.path).as_posix()}"

    def _sizes(self, root: str) -> dict[str, int]:
        """The current size of every file below."""
        self._system.invalidate_cache()
        files = self._system.find(root, detail=True) if self._system.exists(root) else {}
        return {str(name): int(about["size"]) for name, about in files.items()}


def _lacks(file: Path, length: int) -> bool:
    """Whether the copy's file differs from one of this length. A shard that is longer here was not sent yet."""
    try:
        here = file.stat().st_size
    except OSError:
        return True
    return here < length if file.suffix in _GROWING else here != length


def _is_being_written(manifest: Path) -> bool:
    """Whether a process is writing this shard. It holds the manifest's lock until the shard is complete."""
    with contextlib.suppress(OSError), manifest.open("rb") as file:
        return try_lock(file.fileno(), shared=True) is False
    return False


def _open(address: str) -> tuple[Any, str]:
    if reason := missing_modules(MODULES, EXTRA):
        raise Unavailable(f"{address}: {reason}")
    import fsspec

    try:
        system, root = fsspec.core.url_to_fs(address)
    except (ImportError, ValueError) as error:  # its package is missing, or the protocol is unknown
        raise InputError(
            f"can't be opened ({error})", file=address, remedy="install what fsspec needs for it"
        ) from None
    return system, str(root).rstrip("/")


@contextlib.contextmanager
def _name_failures(address: str) -> Any:
    """Adds the address to the errors of a transfer."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise Unavailable(f"{address}: {type(error).__name__}: {error}") from error
