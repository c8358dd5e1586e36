"""Folders that all machines of a job see: a path, a file:// URL, or a URL that fsspec knows, such as s3://bucket/run."""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from bakeoff_providers.errors import InputError, Unavailable
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
        if self.remote:
            name = hashlib.blake2b(self.address.encode(), digest_size=8).hexdigest()
            self.path = home() / "shards" / name
            self._system, self._root = _opened(self.address)
        else:
            self.path = Path(unquote(urlsplit(address).path) if address.startswith("file://") else address)

    def fetch(self, below: str = "") -> Path:
        """The folder here, with everything that the remote one holds below this name."""
        if self.remote:
            root = "/".join(filter(None, (self._root, below)))
            with _named(self.address):
                files = self._system.find(root, detail=True) if self._system.exists(root) else {}
                for name, about in sorted(files.items(), key=lambda item: item[0].endswith(_LAST)):
                    here = self.path / below / name[len(root) :].lstrip("/")
                    if not here.is_file() or here.stat().st_size != about["size"]:
                        here.parent.mkdir(parents=True, exist_ok=True)
                        self._system.get_file(name, str(here))
        return self.path / below

    def send(self, folder: Path) -> None:
        """Copies what is new or longer below a folder of the copy here; what makes other files count goes last."""
        if not self.remote:
            return
        with _named(self.address):
            files = [file for file in folder.rglob("*") if file.is_file() and not file.name.endswith(".lock")]
            for file in sorted(files, key=lambda file: file.name.endswith(_LAST)):
                there = f"{self._root}/{file.relative_to(self.path).as_posix()}"
                if not self._system.exists(there) or self._system.size(there) != file.stat().st_size:
                    self._system.makedirs(there.rpartition("/")[0], exist_ok=True)
                    self._system.put_file(str(file), there)


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
