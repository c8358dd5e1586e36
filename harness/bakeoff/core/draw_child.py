"""The process that draws: jobs as JSON on stdin, a line of JSON for each as it is done. It imports nothing of ours."""

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
    """One job that fails leaves the others."""
    for job in json.load(sys.stdin):
        try:
            answer = _run_job(job)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
