"""A line-up is refused before it costs anything: names, seeds, counts, and secrets in addresses."""

from __future__ import annotations

from pathlib import Path

import pytest
from bakeoff.lineup.entries import ContenderEntry
from bakeoff.lineup.lineup import Lineup
from bakeoff.lineup.sources import contenders_of
from bakeoff_providers.errors import InputError

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
        with pytest.raises(InputError, match="password") as caught:
            Lineup.read(path)
        assert "hunter2" not in str(caught.value)


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
    with pytest.raises(InputError, match="the address has") as caught:
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
    assert Lineup.read(path).contenders[0].existing["existing"] == existing


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
    with pytest.raises(InputError, match="the address has") as caught:
        contenders_of(entry)
    assert caught.value.place == "options.base_url"
