"""A line-up is refused before it costs anything: names, seeds, counts, and secrets in addresses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from bakeoff.lineup.entries import ContenderEntry
from bakeoff.lineup.from_python import lineup_of
from bakeoff.lineup.keys import contenders_of
from bakeoff.lineup.lineup import Lineup
from bakeoff.results.save import save
from bakeoff.running.runner import run
from bakeoff_providers.errors import InputError

from tests.errors import refuses

CONTENDER = '[[contender]]\nprovider = "openai"\nstore = "faiss"\n'


def read(tmp_path: Path, head: str = "", tail: str = "") -> Lineup:
    path = tmp_path / "bakeoff.toml"
    path.write_text(f'task = "wikipedia"\n{head}\n{CONTENDER}{tail}\n')
    return Lineup.read(path)


@pytest.mark.parametrize(
    ("head", "place"),
    [
        ("seed = -5", "seed"),
        ("seed = 9223372036854775808", "seed"),
        ("rounds = 0", "rounds"),
        ("rounds = 1000000000", "rounds"),
        ("depth = 1000000000000", "depth"),
        (f'name = "{"n" * 300}"', "name"),
        (f'name = "{"ü" * 150}"', "name"),
        ('name = "a\\u0000b"', "name"),
        ('name = "a\\u2028b"', "name"),
        ('overrides = { url = "https://me:hunter2@host/" }', "overrides.url"),
    ],
)
def test_settings_out_of_bounds(tmp_path: Path, head: str, place: str) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path, head)
    assert caught.value.place == place
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "tail",
    [
        f'label = "{"l" * 300}"',
        'options = { base_url = "http://me:hunter2@127.0.0.1/v1" }',
        'options = { base_url = "http://127.0.0.1/v1?key=hunter2" }',
        'options = { base_url = "http:/me:hunter2@127.0.0.1/v1" }',
        f'[[fusion]]\nlabel = "{"f" * 300}"\nof = ["openai+faiss"]',
    ],
)
def test_contenders_that_could_not_be_saved_or_shown(tmp_path: Path, tail: str) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path, tail=tail)
    assert caught.value.place
    assert "hunter2" not in f"{caught.value} {caught.value.remedy}"


def test_a_store_with_a_password_in_its_address(tmp_path: Path) -> None:
    path = tmp_path / "bakeoff.toml"
    for url in ("postgresql://me:hunter2@db/x", "host=db password=hunter2"):
        path.write_text(
            'task = "wikipedia"\n[[contender]]\nprovider = "fake"\n'
            f'store = {{ name = "pgvector", options = {{ url = "{url}" }} }}\n'
        )
        with refuses(InputError, "password", place="contender[0], store.options.url", file="bakeoff.toml") as caught:
            Lineup.read(path)
        assert "hunter2" not in str(caught.value)


HALF = "h" * 130  # two of them are longer than a file's name may be
TWO = f'label = "a{HALF}"\n[[contender]]\nranker = "bm25"\nlabel = "b{HALF}"\n'


@pytest.mark.parametrize(
    ("tail", "place"),
    [
        (f'{TWO}[[fusion]]\nof = ["a{HALF}", "b{HALF}"]', "fusion[0]"),
        (f'{TWO}[[rerank]]\nof = "b{HALF}"\nprovider = "cohere"\nmodel = "{HALF}"', "rerank[0]"),
        (f'{TWO}rerank = {{ provider = "cohere", model = "{HALF}" }}', "the rerank of"),
        (f'[[contender]]\nanswers = {{ {"1" * 100} = "a.npy" }}\nlabel = "{HALF}"', "contender[1]"),
        (f'[[contender]]\nprovider = "openai"\nlabel = "{"l" * 198}"\nstore = "faiss"', "contender[1]"),
    ],
)
def test_generated_labels_that_no_file_could_have(tmp_path: Path, tail: str, place: str) -> None:
    with refuses(InputError, "200", file="bakeoff.toml") as caught:
        read(tmp_path, tail=tail)
    assert caught.value.place is not None
    assert caught.value.place.startswith(place)


def test_names_of_several_tasks_that_no_folder_could_have(tmp_path: Path) -> None:
    path = tmp_path / "bakeoff.toml"
    head, task = f'name = "{HALF}"\n', 'task = "wikipedia"\n[[tasks]]\ntask = "trips"\n'
    path.write_text(f'{head}{CONTENDER}[[tasks]]\nname = "{HALF}"\n{task}')
    with refuses(InputError, "200", place="tasks", file="bakeoff.toml") as caught:
        Lineup.read(path)
    assert caught.value.place == "tasks"
    path.write_text(f'{head}{CONTENDER}[[tasks]]\nname = "w"\n{task}')
    assert [one.name for one in Lineup.read(path).per_task()] == [f"{HALF}-w", f"{HALF}-trips"]


@pytest.mark.parametrize(
    ("settings", "place"),
    [
        ({"seed": -5}, "seed"),
        ({"rounds": 0}, "rounds"),
        ({"depth": 0}, "depth"),
        ({"name": "n" * 201}, "name"),
        ({"name": "a\0b"}, "name"),
    ],
)
def test_a_line_up_made_in_python_is_checked_alike(settings: dict[str, Any], place: str) -> None:
    with pytest.raises(InputError) as caught:
        lineup_of({"bm25": "bm25"}, "wikipedia", **settings)
    assert caught.value.place == place


def test_labels_of_a_line_up_made_in_python(tmp_path: Path) -> None:
    with refuses(InputError, "200", place="label llllllllllllllllllllllllllllllllllllllll…"):
        lineup_of({"l" * 201: "bm25"}, "wikipedia")
    with refuses(InputError, "200"):
        lineup_of({HALF: {"answers": {"1" * 100: "a.npy"}, "seeds": []}}, "wikipedia")
    longest = "l" * 200
    result = save(run(lineup_of({longest: "bm25"}, "wikipedia", name="n" * 200, rounds=1)), tmp_path)
    assert (result / "runs" / f"{longest}.trec").is_file()


@pytest.mark.parametrize(
    "contender",
    [
        'retriever = "http://hunter2@127.0.0.1/search"',
        'retriever = "http://127.0.0.1/search?api_key=hunter2"',
        'retriever = { url = "http://127.0.0.1/search?api_key=hunter2" }',
        'retriever = { url = "http://me:hunter2@127.0.0.1/", ids = "*.id" }',
        'provider = "fake"\nstore = { name = "qdrant", existing = "http://127.0.0.1?api-key=hunter2" }',
        'provider = "fake"\nstore = { name = "qdrant", existing = "http://hunter2@127.0.0.1" }',
        'provider = "fake"\nstore = { name = "pgvector", existing = "host=db password = hunter2" }',
        'provider = "fake"\nstore = { name = "pgvector", existing = "me:hunter2@db/x" }',
        'provider = "fake"\nstore = { name = "pgvector", existing = "postgresql://me@db/x?password=hunter2" }',
    ],
)
def test_secrets_in_addresses_of_what_exists_elsewhere(tmp_path: Path, contender: str) -> None:
    path = tmp_path / "bakeoff.toml"
    path.write_text(f'task = "wikipedia"\n[[contender]]\n{contender}\n')
    with refuses(InputError, file="bakeoff.toml") as caught:
        Lineup.read(path)
    assert "hunter2" not in f"{caught.value} {caught.value.remedy}"


@pytest.mark.parametrize(
    "existing", ["postgresql://me@db/x?sslmode=require&sslkey=client.key", "http://127.0.0.1:6333"]
)
def test_a_user_and_harmless_parameters_may_be_named(tmp_path: Path, existing: str) -> None:
    path = tmp_path / "bakeoff.toml"
    store = "pgvector" if existing.startswith("postgresql") else "qdrant"
    path.write_text(
        'task = "wikipedia"\n[[contender]]\nprovider = "fake"\n'
        f'store = {{ name = "{store}", existing = "{existing}" }}\n'
    )
    assert Lineup.read(path).contenders[0].to_dict()["existing"]["existing"] == existing


@pytest.mark.parametrize(
    ("head", "place"),
    [
        ('[engine]\nname = "ray"\naddress = "ray://me:hunter2@head:10001"', "engine.address"),
        ('[engine]\nname = "ray"\nshards = "s3://me:hunter2@bucket/shards"', "engine.shards"),
    ],
)
def test_secrets_in_addresses_of_an_engine(tmp_path: Path, head: str, place: str) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path, head)
    assert caught.value.place == place
    assert "hunter2" not in str(caught.value)


def test_contenders_from_python_hold_no_secret_either() -> None:
    entry = ContenderEntry(provider="openai", store="faiss", options={"base_url": "http://me:hunter2@127.0.0.1/v1"})
    with refuses(InputError, place="options.base_url") as caught:
        contenders_of(entry)
    assert caught.value.place == "options.base_url"
