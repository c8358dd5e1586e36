"""Counts the tests that hang on wording: `python -m tests.wording` lists them, `--all` with what they expect.

A test hangs on wording if something that it asserts, or a pattern that an error has to match, has a literal with two
or more words in a row, over a third of whose neighbours are also neighbours in a string of the sources. Such a literal
is prose of ours: a better sentence would break the test. Not counted is what stays when sentences change: words that
the sources have in no string (data of the test, texts that services send), quoted values, values of a `Literal`, file
names, keys, options, numbers, and commands (`bakeoff queries import`). What a test is parametrised with counts where
the test asserts it.
"""

from __future__ import annotations

import ast
import functools
import re
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
CONFORMANCE = ROOT / "harness" / "bakeoff" / "extensions" / "conformance"  # tests themselves
SOURCES = [
    file
    for folder in (ROOT / "harness", ROOT / "providers")
    for file in sorted(folder.rglob("*.py"))
    if not file.is_relative_to(CONFORMANCE)
]
TESTS = ROOT / "tests"
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`")
_TOKENS = re.compile(r"\S+")
_WORD = re.compile(r"[A-Za-z]+(?:['’][a-z]+)?")


class Hanging(NamedTuple):
    """A test and the literals of ours that it expects."""

    place: str
    name: str
    phrases: tuple[str, ...]


def runs(text: str) -> Iterator[list[str]]:
    """Words that follow each other with nothing but space between them: `no such file: 'a b'` is one run of three."""
    run: list[str] = []
    for token in _TOKENS.findall(_QUOTED.sub(" ''. ", text.replace("\\", ""))):
        bare = token.lstrip("([").rstrip(".,:;!?)]")
        if _WORD.fullmatch(bare):
            run.append(bare.lower())
        if run and (not _WORD.fullmatch(bare) or bare != token.lstrip("([")):
            yield run
            run = []
    if run:
        yield run


def _pairs(text: str) -> set[str]:
    return {
        " ".join(pair) for run in runs(text) if run[0] != "bakeoff" for pair in pairwise(run) if max(map(len, pair)) > 1
    }


def _literals(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _documents(tree: ast.AST) -> set[int]:
    """Docstrings, which nobody is shown."""
    return {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }


@functools.cache
def prose() -> frozenset[str]:
    """Every two words in a row of every string in the sources."""
    found: set[str] = set()
    for file in SOURCES:
        tree = ast.parse(file.read_text(encoding="utf-8"))
        hidden = _documents(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in hidden:
                found |= _pairs(node.value)
    return frozenset(found)


@functools.cache
def values() -> frozenset[str]:
    """Every text that a `Literal` of the sources allows: results and options hold it, so it is a fact."""
    found: set[str] = set()
    for file in SOURCES:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == "Literal":
                found.update(_literals(node.slice))
    return frozenset(found)


def is_ours(text: str) -> bool:
    if text in values():
        return False
    pairs = _pairs(text)
    return 3 * len(pairs & prose()) > len(pairs)


def _asserted(test: ast.FunctionDef, helpers: dict[str, set[int | str]]) -> Iterator[ast.expr]:
    """What a test compares with or searches for, itself or by a helper, and the patterns that errors have to match."""
    for node in ast.walk(test):
        if isinstance(node, ast.Assert):
            yield node.test
        elif isinstance(node, ast.keyword) and node.arg == "match":
            yield node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id in _CHECKS:
                yield from node.args[1:]
            expected = helpers.get(node.func.id, set())
            yield from (argument for place, argument in enumerate(node.args) if place in expected)
            yield from (keyword.value for keyword in node.keywords if keyword.arg in expected)


_CHECKS = frozenset({"refuses", "refused", "says"})  # of tests.errors


def _helpers(tree: ast.Module) -> dict[str, set[int | str]]:
    """The functions of a module that assert what they are given, each with these parameters by place and name."""
    found: dict[str, set[int | str]] = {}
    for function in tree.body:
        if isinstance(function, ast.FunctionDef) and not function.name.startswith("test_"):
            used = {
                node.id
                for asserted in _asserted(function, {})
                for node in ast.walk(asserted)
                if isinstance(node, ast.Name)
            }
            names = [argument.arg for argument in (*function.args.args, *function.args.kwonlyargs)]
            found[function.name] = {key for place, name in enumerate(names) if name in used for key in (place, name)}
    return found


def _values(test: ast.FunctionDef, constants: dict[str, ast.expr]) -> dict[str, list[ast.expr]]:
    """What the names in a test stand for: constants of its module, its own variables, what it is parametrised with."""
    found = {name: [value] for name, value in constants.items()}
    for node in ast.walk(test):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                for name in ast.walk(target):
                    if isinstance(name, ast.Name):
                        found.setdefault(name.id, []).append(node.value)
        elif isinstance(node, ast.For):
            _unpack(node.target, node.iter, found)
    for mark in test.decorator_list:
        if isinstance(mark, ast.Call) and ast.unparse(mark.func).endswith("parametrize"):
            names = [part.strip() for name in _literals(mark.args[0]) for part in name.split(",")]
            target = ast.Tuple([ast.Name(name) for name in names]) if len(names) > 1 else ast.Name(names[0])
            _unpack(target, mark.args[1], found)
    return found


def _unpack(target: ast.expr, values: ast.expr, found: dict[str, list[ast.expr]]) -> None:
    """Each name of a loop with what stands in its column; where no columns are written, with all."""
    names = list(target.elts) if isinstance(target, ast.Tuple) else [target]
    entries = values.elts if isinstance(values, ast.List | ast.Tuple) else [values]
    for entry in entries:
        row = entry.args if isinstance(entry, ast.Call) and ast.unparse(entry.func).endswith("param") else [entry]
        if len(names) > 1 and len(row) == 1 and isinstance(row[0], ast.Tuple):
            row = row[0].elts
        for number, name in enumerate(names):
            if isinstance(name, ast.Name):
                found.setdefault(name.id, []).append(row[number] if len(row) == len(names) else entry)


def _phrases(expression: ast.expr, values: dict[str, list[ast.expr]], seen: frozenset[str]) -> Iterator[str]:
    """Literals of ours in an expression; what is given to a call is input, unless it is a text's own method."""
    match expression:
        case ast.Constant(value=str(text)):
            if is_ours(text):
                yield text
        case ast.Name(id=name) if name not in seen:
            for value in values.get(name, []):
                yield from _phrases(value, values, seen | {name})
        case ast.Call(func=function, args=arguments):
            called = ast.unparse(function).split(".")[-1]
            if called in _SEARCHES:
                for argument in arguments:
                    yield from _phrases(argument, values, seen)
        case ast.Subscript():
            return
        case _:
            for child in ast.iter_child_nodes(expression):
                if isinstance(child, ast.expr):
                    yield from _phrases(child, values, seen)
                elif isinstance(child, ast.comprehension):
                    yield from _phrases(child.iter, values, seen)


_SEARCHES = frozenset(
    ["all", "any", "startswith", "endswith", "count", "index", "find", "search", "match", "fullmatch", "findall",
     "sorted", "set", "list", "escape", "issubset", "removeprefix", "removesuffix", "split", "partition"]
)  # fmt: skip


def hanging() -> list[Hanging]:
    """Every test, or function that tests share, that hangs on wording."""
    found: list[Hanging] = []
    for file in sorted(TESTS.rglob("test_*.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        constants = {
            target.id: node.value
            for node in tree.body
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        helpers = _helpers(tree)
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef):
                values = _values(function, constants)
                phrases: dict[str, None] = {}
                for asserted in _asserted(function, helpers):
                    phrases |= dict.fromkeys(_phrases(asserted, values, frozenset()))
                if phrases:
                    place = f"{file.relative_to(ROOT)}:{function.lineno}"
                    found.append(Hanging(place, function.name, tuple(phrases)))
    return found


def main() -> None:
    tests = hanging()
    for test in tests:
        print(test.place, test.name)
        if "--all" in sys.argv:
            print(*(f"    {phrase!r}" for phrase in test.phrases), sep="\n")
    print(f"{len(tests)} tests hang on wording")


if __name__ == "__main__":
    main()
