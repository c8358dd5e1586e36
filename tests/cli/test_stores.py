"""The store commands as a user meets them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.errors import says
from tests.terminal import bakeoff
from tests.wire import PROXIES, WireServer


@pytest.mark.slow
def test_a_sweep_writes_figures_words_and_pictures(tmp_path: Path) -> None:
    done = bakeoff(
        "sweep", "--synthetic", "1500", "--dimensions", "16", "--rounds", "1", "--store", "faiss", "--store", "hnswlib",
        "--set", "faiss.index=HNSW8", "--set", "hnswlib.m=8", "--set", "ef=10", "--set", "ef=200", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    says(done.stdout, "0.99")
    (folder,) = (tmp_path / "results").iterdir()
    assert {file.name for file in folder.iterdir()} == {
        "sweep.json",
        "sweep.md",
        "sweep.html",
        "charts",
    }
    points = json.loads((folder / "sweep.json").read_text())["points"]
    assert {(point["store"], point["query"]["ef"]) for point in points} >= {("faiss", 10), ("hnswlib", 10)}


@pytest.mark.slow
def test_load_and_footprint_write_theirs(tmp_path: Path) -> None:
    where = ("--synthetic", "1000", "--dimensions", "16")
    done = bakeoff("loadtest", *where, "--clients", "1", "--seconds", "0.2", "--rate", "20", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "1 client" in done.stdout
    done = bakeoff("footprint", *where, "--store", "usearch", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "100,000,000" in done.stdout
    assert "n · (64 + 8·16 + 4·16/15)" in done.stdout
    names = {file.name for folder in (tmp_path / "results").iterdir() for file in folder.iterdir()}
    assert names == {f"{name}.{kind}" for name in ("loadtest", "footprint") for kind in ("json", "md", "html")}


@pytest.mark.slow
def test_conditions_write_theirs(tmp_path: Path) -> None:
    where = ("--synthetic", "200", "--dimensions", "8", "--store", "usearch")
    done = bakeoff("loadtest", *where, "--writes", "5", "--seconds", "0.2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    says(done.stdout, "usearch:", "write,")
    (folder,) = (tmp_path / "results").iterdir()
    (line,) = json.loads((folder / "conditions.json").read_text())["writes"]
    assert [phase["name"] for phase in line["phases"]] == ["before", "during", "after"]
    assert {file.name for file in folder.iterdir()} == {"conditions.json", "conditions.md", "conditions.html"}


@pytest.mark.slow
def test_an_endpoint_says_its_cost_first_and_writes_its_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
    with WireServer() as wire:
        asked = ("loadtest", "--provider", "openai", "--model", "mine", "--set", f"base_url={wire.base('openai')}")
        size = ("--set", "price=0.5", "--batch", "2", "--clients", "1", "--words", "8", "--requests", "3")
        done = bakeoff(*asked, *size, "--max-cost", "0.00001", cwd=tmp_path)
        assert (done.returncode, wire.requests) == (2, [])
        assert "1 settings, 3 requests, about" in done.stderr
        says(done.stderr, "$1e-05")
        done = bakeoff(*asked, *size, "--max-cost", "1", "--documents", "5000", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    assert "5,000" in done.stdout
    (folder,) = (tmp_path / "results").iterdir()
    assert json.loads((folder / "provider.json").read_text())["levels"][0]["texts"] == 6


@pytest.mark.slow
def test_a_line_ups_own_vectors_are_taken(tmp_path: Path) -> None:
    done = bakeoff("sweep", "--contender", "fake", "--set", "index=Flat", "--rounds", "1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Sweep: wikipedia by fake, 20 queries" in done.stdout
    says(done.stdout, "--synthetic", "--vectors")
    says(done.stdout, "line-up", "--store chroma")
    both = ("--store", "faiss", "--store", "chroma", "--set", "faiss.index=Flat")
    done = bakeoff("sweep", "--contender", "fake", *both, "--rounds", "1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "--store chroma" not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["sweep", "--store", "fais"], "'faiss'"),
        (["sweep", "--set", "speed=1", "--synthetic", "100"], "'speed'"),
        (["sweep", "--set", "usearch.ef=1", "--synthetic", "100"], "'usearch'"),
        (["sweep", "--vectors", "none.npy"], "none.npy"),
        (["sweep", "--queries", "q.npy"], "--queries needs --vectors"),
        (["loadtest", "--store", "faiss", "--store", "chroma"], "--store"),
        (["loadtest", "--set", "ef=1", "--set", "ef=2", "--synthetic", "100"], "2 times"),
        (["loadtest", "--writes", "5", "--rate", "9", "--synthetic", "100"], "--clients"),
        (["footprint", "--set", "index", "--synthetic", "100"], "'index'"),
    ],
)
def test_bad_input_ends_with_2_and_no_file(tmp_path: Path, arguments: list[str], said: str) -> None:
    done = bakeoff(*arguments, cwd=tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    says(done.stderr, said)
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())
