"""Everything that reads what somebody wrote, each with files that it reads well."""

from __future__ import annotations

from pathlib import Path

from chaos import answer_targets, format_targets, production_targets, result_targets, task_targets, vector_targets
from chaos.target import Target


def make_targets(folder: Path) -> list[Target]:
    """All of them, with their files written below the folder."""
    makers = [
        *task_targets.MAKERS,
        *result_targets.MAKERS,
        *production_targets.MAKERS,
        *vector_targets.MAKERS,
        *format_targets.MAKERS,
        *answer_targets.MAKERS,
    ]
    return [target for maker in makers for target in maker(folder / "right" / maker.__name__)]
