"""The one way in which a file gets its name: it appears whole, or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """A temporary file beside the target that takes its name only if the block ends well.

    A reader never sees half a file, not even after a kill.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))  # less the user's umask
    try:
        yield part
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
