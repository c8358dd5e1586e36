"""`bakeoff options`: types, defaults, meanings and checks of every option."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest
from bakeoff.cli.main import app
from bakeoff.extensions.installation.options import PluginOptions, Sort, entry_of, find_entries, lineup_entry, sorts
from bakeoff_providers.errors import InputError
from bakeoff_providers.options import options_of, type_words
from bakeoff_providers.registry import Registry
from typer.testing import CliRunner

from tests.errors import refuses, says
from tests.reference_pages import LINEUP, pages

ENTRIES = [entry_of(sort, name) for sort in sorts() for name in sort.registry.builtin] + [lineup_entry()]


class Shelf(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where things are put."""

    rows: Annotated[int, "how many rows"] = 3
    label: str = ""


class Base:
    """What every box has."""

    def __init__(self, *, folder: Path, lid: Annotated[bool, "whether it can be closed"] = True) -> None:
        self.folder, self.lid = folder, lid


class Box(Base):
    """A store of another package.

    Longer words follow.
    """

    extra = "boxes"

    def __init__(
        self,
        *,
        size: Annotated[int, "how much goes in"],
        colour: Annotated[Literal["red", "blue"], "what it looks like"] = "red",
        shelf: Annotated[dict[str, Any] | None, "where it stands", Shelf] = None,
        **rest: Any,
    ) -> None:
        super().__init__(**rest)
        self.size, self.colour, self.shelf = size, colour, shelf


BOXES: Registry[Box] = Registry("box", "tests.boxes", {"box": "tests.cli.test_options:Box"}, given=("folder",))


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: f"{entry.noun} {entry.name}")
def test_every_option_has_a_meaning(entry: PluginOptions) -> None:
    assert entry.about
    silent = [(table.paths, option.name) for table in entry.tables for option in table.options if not option.meaning]
    assert not silent, f'write it beside the type, Annotated[int, "what it means"]: {silent}'


@pytest.mark.parametrize(
    ("hint", "words"),
    [
        (int, "integer"),
        (float | None, "number"),
        (str | int, "string or integer"),
        (list[str], "list of strings"),
        (Sequence[int], "list of integers"),
        (dict[str, Any], "table"),
        (dict[str, float], "table of numbers"),
        (list[Shelf], "list of tables"),
        (Literal["a", "b", "c"], '"a", "b" or "c"'),
        (Literal["a", "b"] | list[Literal["a", "b"]], '"a", "b" or a list of these'),
        (Annotated[bool, "what for"], "true or false"),
    ],
)
def test_types_are_said_as_in_toml(hint: Any, words: str) -> None:
    assert type_words(hint) == words


def test_options_come_from_the_signature_and_from_what_it_hands_on() -> None:
    size, colour, shelf, lid = BOXES.options("box")
    assert (size.name, size.required, size.default_words, size.meaning) == (
        "size",
        True,
        "required",
        "how much goes in",
    )
    assert (colour.choices, colour.default_words) == (("red", "blue"), '"red"')
    assert (shelf.type_words, shelf.default_words, shelf.tables) == ("table", "none", (Shelf,))
    assert (lid.name, lid.type_words, lid.default_words) == ("lid", "true or false", "true")
    assert [option.name for option in options_of(Shelf)] == ["rows", "label"]


def test_a_plugin_of_another_package_gets_its_entry() -> None:
    entry = entry_of(Sort(BOXES, "boxes", "box"), "box")
    assert entry.about == "A store of another package."
    says(entry.install, "'bakeoff[boxes]'")
    assert [table.paths for table in entry.tables] == [(), ("shelf",)]


@pytest.mark.parametrize(
    ("options", "problem", "remedy"),
    [
        ({"size": "big"}, "'big'", ""),
        ({"size": 1, "colour": "bleu"}, "'bleu'", "'blue'"),
        ({"size": 1, "color": "red"}, "'color'", "'colour'"),
        ({"size": 1, "folder": "x"}, "'folder'", "'colour'"),
        ({}, "size", "`bakeoff options box`"),
    ],
)
def test_options_are_held_to_what_they_declare(options: dict[str, Any], problem: str, remedy: str) -> None:
    with refuses(InputError, problem) as raised:
        BOXES.check_options("box", options, whole=True)
    assert remedy in raised.value.remedy


def test_a_name_that_two_registries_know_shows_both() -> None:
    assert [entry.noun for entry in find_entries("cohere")] == ["provider", "reranker"]


def test_the_command_prints_options_for_people_and_programs() -> None:
    text = CliRunner().invoke(app, ["options", "minilm"]).stdout
    says(text, "'bakeoff[minilm]'")
    assert '"fp32" or "int8"' in text
    (faiss, existing) = json.loads(CliRunner().invoke(app, ["options", "faiss", "--json"]).stdout)
    probes = next(option for option in faiss["tables"][0]["options"] if option["name"] == "nprobe")
    assert (probes["type"], probes["default"], probes["required"]) == ("integer", 16, False)
    assert (faiss["noun"], existing["noun"]) == ("store", "existing index")


def test_the_command_alone_lists_every_name() -> None:
    text = CliRunner().invoke(app, ["options"]).stdout
    assert all(name in text for sort in sorts() for name in sort.registry.builtin)
    assert json.loads(CliRunner().invoke(app, ["options", "--json"]).stdout)["ranker"][0] == "bm25"


@pytest.mark.parametrize("word", ["retriever", "retrievers"])
def test_the_word_for_a_sort_lists_its_plug_ins(word: str) -> None:
    shown = CliRunner().invoke(app, ["options", word]).stdout
    assert "function" in shown
    assert "http" in shown
    says(shown, "[[contender]]")


def test_a_misspelt_name_gets_a_suggestion() -> None:
    raised = CliRunner().invoke(app, ["options", "fiass"]).exception
    assert isinstance(raised, InputError)
    says(raised.remedy, "'faiss'")


def test_a_lineup_has_its_keys_on_one_page() -> None:
    page = pages()[LINEUP]
    assert "## `contender.store`" in page
    assert "| `rounds` | integer | 3 |" in page
