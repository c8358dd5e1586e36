"""Every option of every plug-in: a value of another type or out of its range is refused before anything is built."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from bakeoff.evaluation.measures import Measure
from bakeoff.extensions.installation.options import Sort, sorts
from bakeoff.lineup.lineup import Lineup
from bakeoff_providers.errors import InputError
from bakeoff_providers.options import REST, Option, bare, is_union
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples

# Measures are spelt in a grammar of their own, which has its own checks.
SORTS = [sort for sort in sorts() if sort.registry.noun != "measure"]
OPTIONS = [
    (sort, name, option)
    for sort in SORTS
    for name in sort.registry.builtin
    for option in sort.registry.options(name)
    if option.name != REST
]
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "text": st.text(max_size=5),
    "bool": st.booleans(),
    "integer": st.integers(-5, 5),
    "number": st.floats(-5, 5).filter(lambda value: not value.is_integer()),
    "list": st.lists(st.none(), min_size=1, max_size=2),
    "table": st.dictionaries(st.just("no such key"), st.none(), min_size=1),
}
ONE_OF_EACH = {
    "text": "x", "bool": True, "integer": 5, "number": 0.5, "list": [None], "table": {"no such key": None}
}  # fmt: skip


def _takes(hint: Any) -> set[str]:
    """The kinds of value that a type may have; all of them where only the plug-in itself can say."""
    hint = bare(hint)
    if is_union(hint):
        return set().union(*map(_takes, get_args(hint)))
    kinds: dict[Any, set[str]] = {
        str: {"text"}, int: {"integer"}, float: {"integer", "number"}, bool: {"bool"}, type(None): set()
    }  # fmt: skip
    if hint in kinds:
        return kinds[hint]
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return {"table"} if hint.__struct_config__.forbid_unknown_fields else set(VALUES)
    return set() if "Literal" in str(hint) else set(VALUES)


def _numbers(option: Option) -> bool:
    return bool(_takes(option.type) & {"integer", "number"}) and _takes(option.type) != set(VALUES)


def _beyond(option: Option) -> list[float]:
    """Numbers next to the ends of its range, and those that no range has."""
    low, high = option.range.ge, option.range.le
    assert high is not None
    below = [option.range.gt, -1] if low is None else [math.floor(low) - 1]
    fractions = [math.nan, math.inf, -math.inf] if "number" in _takes(option.type) else []
    return [*below, math.ceil(high) + 1, 10**30, -(10**30), 10**400, *fractions]


def _refused(sort: Sort, name: str, option: Option, value: Any) -> None:
    with pytest.raises(InputError) as caught:
        sort.registry.check_options(name, {option.name: value})
    assert caught.value.place.startswith(option.name)


@pytest.mark.parametrize("sort", SORTS, ids=lambda sort: sort.registry.noun)
def test_every_option_takes_its_default_and_neither_other_types_nor_numbers_out_of_range(sort: Sort) -> None:
    for _, name, option in (case for case in OPTIONS if case[0] is sort):
        if option.default is not None and not isinstance(option.default, (tuple, msgspec.Struct)):
            sort.registry.check_options(name, {option.name: option.default})
        for kind in set(VALUES) - _takes(option.type):
            _refused(sort, name, option, ONE_OF_EACH[kind])
        for number in _beyond(option) if _numbers(option) else []:
            _refused(sort, name, option, number)


@settings(max_examples=examples(60), deadline=None, database=None)
@given(st.data())
def test_whatever_is_drawn_for_an_option_is_refused(data: st.DataObject) -> None:
    sort, name, option = data.draw(st.sampled_from(OPTIONS))
    wrong = [VALUES[kind] for kind in VALUES if kind not in _takes(option.type)]
    if _numbers(option):
        wrong += [st.integers(max_value=-1), st.integers(min_value=10**13)]
    if wrong:
        _refused(sort, name, option, data.draw(st.one_of(wrong)))


@pytest.mark.parametrize(
    "spelling",
    ["p@0", "p@-5", "p(rel=-5)@5", "p(rel=x)@5", "rbp(p=-5)", "rbp(p=nan)", "rbp(p=2)", "err(max=0)",
     "err(max=999999999)", "ndcg@1e999", "ndcg(gain=7)@5", "map(over=5)@5", "ndcg@٣"],
)  # fmt: skip
def test_measures_refuse_theirs(spelling: str) -> None:
    with pytest.raises(InputError):
        Measure.parse(spelling)


ROWS = [
    'ranker = "bm25"\noptions = { k1 = VALUE }', 'provider = "fake"\nstore = "faiss"\noptions = { seed = VALUE }',
    'provider = "fake"\nstore = { name = "faiss", options = { ef = VALUE } }',
    'provider = "tfidf"\nstore = "faiss"\nrerank = { provider = "cohere", options = { timeout = VALUE } }',
    'retriever = { url = "http://127.0.0.1:9", timeout = VALUE }',
]  # fmt: skip


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("value", ["-5", "true", '"x"', "nan", "[]", "1e300"])
def test_in_a_line_up(tmp_path: Path, row: str, value: str) -> None:
    path = tmp_path / "lineup.toml"
    path.write_text(f'task = "wikipedia"\n[[contender]]\n{row.replace("VALUE", value)}\n')
    with pytest.raises(InputError):
        Lineup.read(path)
