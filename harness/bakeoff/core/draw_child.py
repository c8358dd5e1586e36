"""The drawing process. Reads jobs as JSON from stdin, writes one line of JSON per job. Imports nothing of Bakeoff."""

from __future__ import annotations

import base64
import json
import sys
from typing import Any

import vl_convert


def _run_job(job: dict[str, Any]) -> dict[str, str]:
    if job["what"] == "bundle":
        return {"js": vl_convert.javascript_bundle(job["script"])}
    drawn = vl_convert.vegalite_to_svg(job["spec"])
    return {"svg": drawn, "png": base64.b64encode(vl_convert.svg_to_png(drawn, scale=2)).decode()}


def main() -> None:
    """A job that fails does not affect the others."""
    for job in json.load(sys.stdin):
        try:
            answer = _run_job(job)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
