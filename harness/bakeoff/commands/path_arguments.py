"""Every path on the command line is one that the system can look up; what no file can be called is said at once."""

from __future__ import annotations

import errno
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


def with_checked_paths(command: Any) -> Any:
    """The command, and those below it, with every path checked before the command begins."""
    for part in (command, *getattr(command, "commands", {}).values()):
        for parameter in getattr(part, "params", ()):
            if type(parameter.type) is TyperPath:
                parameter.type.__class__ = _CheckedPath
    return command
