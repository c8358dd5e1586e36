"""The contract of every check: facts, words, JSON, OpenMetrics, and the four exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from bakeoff.cli.shared_options import deliver
from bakeoff.core.facts import fact
from bakeoff.results.check import Check, Gauge, openmetrics
from bakeoff_providers.errors import CallFailed, EmbeddingFailed, InputError, StoreError, Unavailable
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from tests.errors import refuses, says
from tests.terminal import bakeoff


@given(st.lists(st.tuples(st.text(max_size=20), st.floats(allow_nan=False)), max_size=5))
def test_metrics_are_read_back_by_prometheus(samples: list[tuple[str, float]]) -> None:
    wanted = dict(samples)
    gauges = [Gauge("some_figure", 'a "quoted" help', value, {"label": label}) for label, value in wanted.items()]
    families = list(text_string_to_metric_families(openmetrics([*gauges, Gauge("other", "help", 1.0)])))
    assert [family.name for family in families] == (["bakeoff_some_figure"] if wanted else []) + ["bakeoff_other"]
    if wanted:
        assert {sample.labels["label"]: sample.value for sample in families[0].samples} == wanted


def _delivered(outcome: Check | Exception, metrics: Path | None = None, *, as_json: bool = False) -> int:
    def check() -> Check:
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    with pytest.raises(typer.Exit) as ended:
        deliver("probe", check, as_json=as_json, metrics_file=metrics)
    return ended.value.exit_code


def test_fine_and_worse(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    figures = {"recall": 0.5, "unknown": float("nan")}
    outcome = Check(command="probe", worse=True, facts=[fact("quote", text="It lost half.")], figures=figures)
    assert _delivered(outcome, tmp_path / "metrics.prom", as_json=True) == 1
    printed = json.loads(capsys.readouterr().out)
    assert printed == {
        "command": "probe",
        "worse": True,
        "facts": [{"id": "quote", "arguments": {"text": "It lost half."}}],
        "text": ["It lost half."],
        "format": 2,
        "recall": 0.5,
        "unknown": None,
    }
    (family,) = text_string_to_metric_families((tmp_path / "metrics.prom").read_text(encoding="utf-8"))
    assert [(sample.name, sample.labels, sample.value) for sample in family.samples] == [
        ("bakeoff_worse", {"check": "probe"}, 1.0)
    ]
    assert _delivered(Check(command="probe", worse=False, facts=[fact("quote", text="Fine.")])) == 0
    assert capsys.readouterr().out == "Fine.\n"


@pytest.mark.parametrize("error", [Unavailable("x"), CallFailed("x"), EmbeddingFailed("x"), StoreError("x")])
def test_what_could_not_be_reached_is_3_and_the_monitor_hears_of_it(error: Exception, tmp_path: Path) -> None:
    (tmp_path / "metrics.prom").write_text("old figures", encoding="utf-8")
    assert _delivered(error, tmp_path / "metrics.prom") == 3
    (family,) = text_string_to_metric_families((tmp_path / "metrics.prom").read_text(encoding="utf-8"))
    assert (family.name, family.samples[0].value) == ("bakeoff_reached", 0.0)


def test_bad_input_is_left_to_the_top_and_metrics_need_a_folder(tmp_path: Path) -> None:
    def check() -> Check:
        raise InputError("unfathomable")

    with refuses(InputError, "unfathomable"):
        deliver("probe", check, as_json=False, metrics_file=tmp_path / "metrics.prom")
    assert not (tmp_path / "metrics.prom").exists()
    with refuses(InputError, place="--metrics-file", file="metrics.prom"):
        deliver("probe", check, as_json=False, metrics_file=tmp_path / "none" / "metrics.prom")


def test_the_commands_of_traffic_end_with_their_codes(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    rows = [
        f"u{i},s,{arm},q,1 2,{'1' if i % 3 else ''}"
        for arm in ("old", "new")
        for i in (range(40) if arm == "old" else range(40, 80))
    ]
    log.write_text("user,session,variant,query,shown,clicked\n" + "\n".join(rows) + "\n", encoding="utf-8")
    names = ["--control", "old", "--treatment", "new"]
    wrong = bakeoff("ab", "log.csv", *names, cwd=tmp_path)
    assert wrong.returncode == 2
    says(wrong.stderr, "log.csv", "'arm'")
    done = bakeoff("ab", "log.csv", *names, "--column", "arm=variant", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["users"] == [40, 40]
    log.write_text(
        "user,query,shown,team,clicked\n" + "".join(f"u{i},q,1 2,a b,1\n" for i in range(20)), encoding="utf-8"
    )
    done = bakeoff("interleave", "log.csv", "--metrics-file", "m.prom", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    says(done.stdout)
    values = {
        family.name: family.samples[0].value
        for family in text_string_to_metric_families((tmp_path / "m.prom").read_text(encoding="utf-8"))
    }
    assert values["bakeoff_interleave_preference"] == -1.0


def test_a_disk_without_room_is_bad_input_and_not_a_service_that_is_gone() -> None:
    def check() -> Check:
        try:
            try:
                raise InputError("can't be written", file="vectors")
            except InputError as error:
                raise StoreError("the row can't be run") from error
        except StoreError as error:
            raise Unavailable("can't be written") from error

    with refuses(InputError, file="vectors"):
        deliver("migrate", check, as_json=False, metrics_file=None)
