"""Single files of a Hugging Face repository, through the hub's own cache."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from bakeoff_providers.errors import Unavailable
from bakeoff_providers.secrets import scrub

_NETWORK_SECONDS = 15
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


def is_hub_name(text: str) -> bool:
    """Whether a text has the form `owner/name`. It may not exist."""
    return _NAME.fullmatch(text) is not None


def first_file(
    repository: str, names: Sequence[str], *, revision: str | None = None, offline: bool = False
) -> Path | None:
    """The first of these files in the repository, cached or fetched; None if it has none."""
    try:
        from huggingface_hub import hf_hub_download
        from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError
    except ImportError as error:
        raise Unavailable("the hub needs huggingface_hub: install bakeoff[minilm]") from error
    unreachable = False
    for name in names:
        try:
            return Path(
                hf_hub_download(
                    repository,
                    name,
                    revision=revision,
                    local_files_only=offline,
                    etag_timeout=_NETWORK_SECONDS,
                    endpoint=os.environ.get("HF_ENDPOINT") or None,
                )
            )
        except LocalEntryNotFoundError:
            unreachable = True  # not cached, and the hub can't be reached
        except EntryNotFoundError:
            continue
        except Exception as error:  # the hub's client raises its own, its HTTP library's and the system's errors
            raise Unavailable(f"the hub did not give {repository}: {scrub(str(error))}") from None
    if unreachable:
        raise Unavailable(f"{repository} is not in the hub's cache, and the hub can't be reached")
    return None
