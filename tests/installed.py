"""Packages of somebody else's as an installer leaves them: modules, metadata and entry points in a folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def install(site: Path, name: str, modules: Mapping[str, str], points: Mapping[str, str], version: str = "1.0") -> Path:
    """Into a folder that is to be on the path; `points` are `name = module:object` by the group after `bakeoff.`."""
    info = site / f"{name}-{version}.dist-info"
    info.mkdir(parents=True)
    for module, source in modules.items():
        (site / f"{module}.py").write_text(source)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    entries = [f"[bakeoff.{group}]\n{lines}\n" for group, lines in points.items()]
    (info / "entry_points.txt").write_text("\n".join(entries))
    return site
