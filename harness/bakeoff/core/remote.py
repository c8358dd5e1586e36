"""Folders that all machines of a job see: a path, a file:// URL, or a URL that fsspec knows, such as s3://bucket/run."""

from __future__ import annotations

import contextlib
import hashlib
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from bakeoff_providers.errors import InputError, Unavailable
from bakeoff_providers.files import replacing
from bakeoff_providers.registry import missing_modules
from bakeoff_providers.weights import home

MODULES, EXTRA = ("fsspec",), "remote"
_LAST = (".manifest", ".json")  # what makes other files count is sent after them


class SharedFolder:
    """A folder by its address. Where it is not on this machine there is a copy of it here, which is mapped and read."""

    def __init__(self, address: str) -> None:
        self.address = address.rstrip("/")
        self.remote = "://" in address and not address.startswith("file://")
        self._system: Any = None
        self._made: set[str] = set()  # folders there that this process has made
        if self.remote:
            name = hashlib.blake2b(self.address.encode(), digest_size=8).hexdigest()
            self.path = (home() / "shards" / name).resolve()
            self._system, self._root = _opened(self.address)
        else:
            self.path = Path(unquote(urlsplit(address).path) if address.startswith("file://") else address)

    def fetch(self, below: str = "") -> Path:
        """The folder here, with everything that the remote one holds below this name."""
        if self.remote:
            root = "/".join(filter(None, (self._root, below)))
            with _named(self.address):
                for name, length in sorted(self._sizes(root).items(), key=lambda item: item[0].endswith(_LAST)):
                    here = self.path / below / name[len(root) :].lstrip("/")
                    if not here.is_file() or here.stat().st_size != length:
                        with replacing(here) as part:  # another process may fetch it, too
                            self._system.get_file(name, str(part))
        return self.path / below

    def send(self, folder: Path) -> None:
        """Copies what is new or longer below a folder of the copy here; what makes other files count goes last."""
        if not self.remote:
            return
        files = [file for file in folder.rglob("*") if file.is_file() and not file.name.endswith(".lock")]
        with _named(self.address):
            there = self._sizes(self._there(folder))
        self.send_files([file for file in files if there.get(self._there(file)) != file.stat().st_size])

    def send_files(self, files: Iterable[Path]) -> None:
        """Copies these files of the copy here, whatever is there already."""
        if not self.remote:
            return
        with _named(self.address):
            for file in sorted(files, key=lambda file: file.name.endswith(_LAST)):
                there = self._there(file)
                if (folder := there.rpartition("/")[0]) not in self._made:
                    self._system.makedirs(folder, exist_ok=True)
                    self._made.add(folder)
                self._system.put_file(str(file), there)

    @contextlib.contextmanager
    def marked(self) -> Iterator[str]:
        """A file that whoever sees this folder sees, too, for as long as it is looked for: its path or URL."""
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
                with _named(self.address):
                    self._system.rm_file(self._there(here))

    def _there(self, here: Path) -> str:
        return self._root if here == self.path else f"{self._root}/{here.relative_to(self.path).as_posix()}"

    def _sizes(self, root: str) -> dict[str, int]:
        """Every file below, as it is now."""
        self._system.invalidate_cache()
        files = self._system.find(root, detail=True) if self._system.exists(root) else {}
        return {str(name): int(about["size"]) for name, about in files.items()}


def _opened(address: str) -> tuple[Any, str]:
    if reason := missing_modules(MODULES, EXTRA):
        raise Unavailable(f"{address}: {reason}")
    import fsspec

    try:
        system, root = fsspec.core.url_to_fs(address)
    except (ImportError, ValueError) as error:  # its own package is missing, or nobody knows this protocol
        raise InputError(
            f"can't be opened ({error})", file=address, remedy="install what fsspec needs for it"
        ) from None
    return system, str(root).rstrip("/")


@contextlib.contextmanager
def _named(address: str) -> Any:
    """A failure on the way names the address."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise Unavailable(f"{address}: {type(error).__name__}: {error}") from error
