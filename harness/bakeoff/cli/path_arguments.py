"""What every path and number on the command line must be: a name that a file can have, and no NaN."""

from __future__ import annotations

import copy
import errno
import math
import os
from typing import Any

import typer
from typer.models import TyperPath

_IMPOSSIBLE = (errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL)


class _CheckedPath(TyperPath):
    """Later, each of a hundred places that ask whether a file exists would have to expect this."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        try:
            os.lstat(value)
        except ValueError:
            raise typer.BadParameter("no file can have a null byte in its name", ctx=ctx, param=param) from None
        except OSError as error:
            if error.errno in _IMPOSSIBLE:
                problem = f"{os.fspath(value)[:40]}…: {error.strerror}"
                raise typer.BadParameter(problem, ctx=ctx, param=param) from None
        return super().convert(value, param, ctx)


def _finite(kind: Any) -> Any:
    """A type of numbers that takes neither NaN nor infinity: every comparison with them lets all or nothing through."""
    checked = copy.copy(kind)

    def convert(value: Any, param: Any, ctx: Any) -> Any:
        number = kind.convert(value, param, ctx)
        if not math.isfinite(number):
            raise typer.BadParameter(f"{value} is no number that can be kept to", ctx=ctx, param=param)
        return number

    checked.convert = convert
    return checked


def check_values(parameters: list[Any]) -> None:
    """Have every path and number among a command's parameters checked before the command begins."""
    for parameter in parameters:
        if type(parameter.type) is TyperPath:
            parameter.type.__class__ = _CheckedPath
        elif getattr(parameter.type, "name", "") in ("float", "float range"):
            parameter.type = _finite(parameter.type)
