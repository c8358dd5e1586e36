"""Source → mutants: each is one small change at one place, the rest of the text stays as it is."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

COMPARED: dict[type[ast.cmpop], tuple[str, ...]] = {
    ast.Lt: ("<=", ">"),
    ast.LtE: ("<", ">"),
    ast.Gt: (">=", "<"),
    ast.GtE: (">", "<"),
    ast.Eq: ("!=",),
    ast.NotEq: ("==",),
    ast.In: ("not in",),
    ast.NotIn: ("in",),
    ast.Is: ("is not",),
    ast.IsNot: ("is",),
}
CALCULATED: dict[type[ast.operator], tuple[str, ...]] = {
    ast.Add: ("-",),
    ast.Sub: ("+",),
    ast.Mult: ("/",),
    ast.Div: ("*",),
    ast.FloorDiv: ("*",),
    ast.Mod: ("+",),
    ast.Pow: ("*",),
    ast.BitAnd: ("|",),
    ast.BitOr: ("&",),
}
SWAPPED = {
    "min": "max", "max": "min", "any": "all", "all": "any", "minimum": "maximum", "maximum": "minimum",
    "argmin": "argmax", "argmax": "argmin", "floor": "ceil", "ceil": "floor", "zeros": "ones", "ones": "zeros",
}  # fmt: skip
SMALL = 100
RETURNED = {"bool": ("True", "False"), "int": ("0", "1"), "float": ("0.0", "1.0"), "str": ('""',)}


@dataclass(frozen=True, slots=True)
class Mutant:
    """Characters `start` to `end` of a module, replaced."""

    module: str
    start: int
    end: int
    replacement: str

    def applied(self, source: str) -> str:
        """The whole module with the change."""
        return source[: self.start] + self.replacement + source[self.end :]

    def lines(self, source: str) -> tuple[str, str]:
        """The changed lines before and after, without their indentation: what tells one mutant from another."""
        first, last = source.rfind("\n", 0, self.start) + 1, source.find("\n", self.end)
        before, after = source[first:last], source[first : self.start] + self.replacement + source[self.end : last]
        return " ".join(map(str.strip, before.splitlines())), " ".join(map(str.strip, after.splitlines()))

    def line_number(self, source: str) -> int:
        """Where it is, for a reader."""
        return source.count("\n", 0, self.start) + 1


def mutants_of(module: str, source: str) -> list[Mutant]:
    """Every mutant of a module, in the order of its text."""
    finder = _Finder(module, source)
    finder.visit(ast.parse(source))
    return sorted(set(finder.mutants), key=lambda mutant: (mutant.start, mutant.end, mutant.replacement))


class _Finder(ast.NodeVisitor):
    """Leaves out annotations, decorators, class options and error messages: a change there alters no figure."""

    def __init__(self, module: str, source: str) -> None:
        self.module, self.source, self.mutants = module, source, list[Mutant]()
        self.encoded = source.encode().splitlines(keepends=True)
        self.returns: list[str] = []
        self.starts = [0]
        for line in source.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Defaults and body; the annotation says what a constant return could be."""
        for default in [*node.args.defaults, *node.args.kw_defaults]:
            if default is not None:
                self.visit(default)
        self.returns.append(ast.unparse(node.returns) if node.returns else "")
        for statement in node.body:
            self.visit(statement)
        self.returns.pop()

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """The body alone."""
        for statement in node.body:
            self.visit(statement)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """The value alone."""
        if node.value is not None:
            self.visit(node.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        """Aliases of types are no figures."""
        if not (isinstance(node.value, ast.Subscript) and ast.unparse(node.value.value) in ("Annotated", "Callable")):
            self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> None:
        """`zip(…, strict=True)` guards against ourselves."""
        if node.arg != "strict":
            self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        """That an error is raised is decided elsewhere."""

    def visit_Return(self, node: ast.Return) -> None:
        """Another constant of the same type."""
        if node.value is not None:
            written = ast.get_source_segment(self.source, node.value)
            for constant in RETURNED.get(self.returns[-1] if self.returns else "", ()):
                if constant != written:
                    self._replace(node.value, constant)
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        """A condition that is neither compared nor joined is turned round."""
        self._turned(node.test)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        """As in a statement."""
        self._turned(node.test)
        self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        """As in `if`."""
        self._turned(node.test)
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        """Its limit, or its direction."""
        operands = [node.left, *node.comparators]
        for left, operator, right in zip(operands, node.ops, operands[1:], strict=False):
            for replacement in COMPARED[type(operator)]:
                self._between(left, right, replacement)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        """`and` for `or`, and the other way round."""
        for left, right in zip(node.values, node.values[1:], strict=False):
            self._between(left, right, "or" if isinstance(node.op, ast.And) else "and")
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """The opposite operator; not for texts and paths, where Python itself would object."""
        if not any(_is_text(side) for side in (node.left, node.right)):
            for replacement in CALCULATED.get(type(node.op), ()):
                self._between(node.left, node.right, replacement)
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """The opposite operator."""
        if not _is_text(node.value):
            for replacement in CALCULATED.get(type(node.op), ()):
                self._between(node.target, node.value, f"{replacement}=")
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        """Without its `not` or its sign."""
        if isinstance(node.op, ast.Not | ast.USub):
            start = self._offset(node.lineno, node.col_offset)
            length = len("not ") if isinstance(node.op, ast.Not) else len("-")
            self.mutants.append(Mutant(self.module, start, start + length, ""))
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        """min for max and the like, as a name or as an attribute."""
        function = node.func
        if isinstance(function, ast.Name) and function.id in SWAPPED:
            self._replace(function, SWAPPED[function.id])
        if isinstance(function, ast.Attribute) and function.attr in SWAPPED:
            end = self._span(function)[1]
            self.mutants.append(Mutant(self.module, end - len(function.attr), end, SWAPPED[function.attr]))
        self.generic_visit(node)

    def visit_Break(self, node: ast.Break) -> None:
        """Goes on instead."""
        self._replace(node, "continue")

    def visit_Continue(self, node: ast.Continue) -> None:
        """Stops instead."""
        self._replace(node, "break")

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Positions inside of f-strings are not reliable in Python 3.11."""

    def visit_Constant(self, node: ast.Constant) -> None:
        """One more, one less; twice as much where it has a point. Large numbers are sizes of blocks and samples."""
        value = node.value
        if isinstance(value, bool):
            self._replace(node, str(not value))
        elif isinstance(value, int) and value <= SMALL:
            for other in {value + 1, max(value - 1, 0)} - {value}:
                self._replace(node, str(other))
        elif isinstance(value, float):
            self._replace(node, repr(2 * value if value else 1.0))

    def _turned(self, test: ast.expr) -> None:
        if not isinstance(test, ast.Compare | ast.BoolOp | ast.UnaryOp | ast.NamedExpr):
            start, end = self._span(test)
            self._replace(test, f"not ({self.source[start:end]})")

    def _between(self, left: ast.expr, right: ast.expr, replacement: str) -> None:
        """Replaces the operator between two operands, brackets and blanks around it left as they are."""
        start, end = self._span(left)[1], self._span(right)[0]
        between = self.source[start:end]
        if "#" in between:
            return
        inner = between.lstrip(" )\n\t")
        operator = inner.rstrip(" (\n\t")
        begin = start + len(between) - len(inner)
        self.mutants.append(Mutant(self.module, begin, begin + len(operator), replacement))

    def _replace(self, node: ast.expr | ast.stmt, replacement: str) -> None:
        start, end = self._span(node)
        self.mutants.append(Mutant(self.module, start, end, replacement))

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._offset(node.lineno, node.col_offset), self._offset(node.end_lineno, node.end_col_offset)

    def _offset(self, line: int, column: int) -> int:
        """Columns are counted in bytes by the parser."""
        return self.starts[line - 1] + len(self.encoded[line - 1][:column].decode())


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))


def distinct_points(mutants: list[Mutant]) -> Iterator[list[Mutant]]:
    """Mutants of the same characters together, so that a sample takes one of them."""
    by_place: dict[tuple[str, int, int], list[Mutant]] = {}
    for mutant in mutants:
        by_place.setdefault((mutant.module, mutant.start, mutant.end), []).append(mutant)
    yield from by_place.values()
