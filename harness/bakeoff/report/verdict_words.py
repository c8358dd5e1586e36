"""The verdict as text: the decision, what to take, whether to stop, the next step, and the picks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from shlex import quote
from typing import assert_never

from msgspec import UNSET

from bakeoff.core.clock import SAMPLES_FOR
from bakeoff.core.figures import PairedDifference
from bakeoff.core.printable import dollars, join_names
from bakeoff.report.groups import RowGroup, group_rows, name_without_store, shorten, store_name
from bakeoff.report.numbers import (
    about,
    alternatives,
    bound_above,
    bound_below,
    difference,
    enumeration,
    interval,
    milliseconds,
    of_needs,
    signed,
    times,
)
from bakeoff.results.picks import Choice, has_reliable_times
from bakeoff.results.schema import Look, Pick, Row, Standing, Summary, Verdict

CONFIDENCE = "95% confidence"
NOT_SETTLED = "Not settled."  # precedes the next step
WITHOUT_VERDICT = {
    "labels by row": "There is no verdict: hybrid labels come from each row’s own similarities, so no two rows share "
    "labels.",
    "fault": "There is no verdict: an error in Bakeoff prevented it.",
}
NO_MARKS = {"nothing ran", "not comparable", "one row", "nothing beats random", "all alike", "older format"}
MADE_OF_OTHERS = ("fused", "reranked")  # row types that use other rows' models
NO_NEWS = 0.005  # smaller score differences are not mentioned
USES = {
    "faster": "Faster",
    "fastest": "Fastest",
    "cheaper": "Cheaper",
    "as good": "As good",
    "within limits": "Within limits",
}


@dataclass(frozen=True)
class Findings:
    """A result prepared for text: rows that score alike form a group with one name."""

    summary: Summary

    @property
    def verdict(self) -> Verdict:
        """The stored verdict."""
        return self.summary.verdict

    @cached_property
    def groups(self) -> list[RowGroup]:
        """The contenders that ran, by mean."""
        alike = {label: standing.alike for label, standing in self.verdict.standings.items()}
        return sorted(group_rows(self.summary.ran, alike), key=lambda group: -round(self.mean(group.first), 12))

    @cached_property
    def group_of(self) -> dict[str, RowGroup]:
        """The group of each row that ran, by label."""
        return {row.label: group for group in self.groups for row in group.rows}

    @property
    def measure(self) -> str:
        """The display name of the deciding measure."""
        return self.short_label(self.verdict.measure)

    @cached_property
    def short_labels(self) -> dict[str, str]:
        """Each measure's label, without its bracketed part if that stays unique."""
        measures = dict.fromkeys([*self.summary.matrix_measures, self.verdict.measure])
        whole = {measure: self.summary.label(measure) for measure in measures}
        short = {measure: label.partition(" (")[0] for measure, label in whole.items()}
        return {
            measure: label if list(short.values()).count(label) == 1 else whole[measure]
            for measure, label in short.items()
        }

    def short_label(self, measure: str) -> str:
        """A measure's name in sentences."""
        return self.short_labels.get(measure) or self.summary.label(measure)

    def mean(self, row: Row) -> float:
        """A row's mean on the deciding measure."""
        return row.measures[self.verdict.measure].mean

    def name(self, label: str | None) -> str:
        """A row's name in sentences: its group's name, shortened; its label if it did not run."""
        group = self.group_of.get(label or "")
        return shorten(group.name if group else label or "")

    @property
    def take(self) -> str:
        """The name of the row to take, with its own store if the name has one."""
        label = self.verdict.take or ""
        return shorten(label) if label in self.group_of and self.group_of[label].parted else self.name(label)

    def names(self, labels: Sequence[str]) -> list[str]:
        """The distinct names of rows."""
        return list(dict.fromkeys(map(self.name, labels)))

    def standing(self, label: str) -> Standing | None:
        """A row's standing in the verdict."""
        return self.verdict.standings.get(label)

    def pair(self, a: str, b: str) -> PairedDifference | None:
        """The comparison of two rows or their equals, as a's mean minus b's."""
        mine, yours = self._alike(a), self._alike(b)
        for pair in self.verdict.pairs:
            if pair.a in mine and pair.b in yours:
                return pair
            if pair.a in yours and pair.b in mine:
                return pair.reverse()
        return None

    def _alike(self, label: str) -> set[str]:
        return {row.label for row in self.group_of[label].rows} if label in self.group_of else {label}

    def count(self, number: int) -> str:
        """A number of queries, or of the task's own unit."""
        return f"{number:,} {plural(self.summary.task.unit, number)}"

    @property
    def asked(self) -> str:
        """The number of queries, and of needs if several queries share one."""
        return self.count(self.summary.task.queries) + of_needs(self.summary.task.clusters)

    @property
    def units(self) -> tuple[int, str]:
        """The number and name of the independent units: queries, or needs if queries share them."""
        task = self.summary.task
        return (task.clusters, "need") if task.clusters else (task.queries, task.unit)

    @property
    def baselines(self) -> Mapping[str, float]:
        """The deciding figure of the oracle and of a random order."""
        rows = [row for row in self.summary.rows if row.row_type == "baseline"]
        return {row.label: self.mean(row) for row in rows if self.verdict.measure in row.measures}

    @cached_property
    def most_alike(self) -> RowGroup:
        """The largest group."""
        return max(self.groups, key=lambda group: len(group.rows))

    @cached_property
    def compares_stores(self) -> bool:
        """Whether only the store is left to choose: all rows, or most rows of the only model, score alike.

        The others differ only by their index's loss against exact search.
        """
        if self.verdict.situation == "all alike":
            return True
        usual = self.verdict.situation in ("clear", "too few differ", "within margin", "not settled")
        if not usual or len({name_without_store(row) for row in self.summary.ran}) > 1:
            return False
        rows = self.most_alike.rows
        return 2 * len(rows) > len(self.summary.ran) > 2 and rows[0].label in self.verdict.best_set

    @property
    def has_marks(self) -> bool:
        """Whether the verdict separates rows."""
        return self.verdict.situation not in NO_MARKS and not self.compares_stores

    @property
    def has_incumbent(self) -> bool:
        """Whether rows are compared with an incumbent."""
        return bool(self.verdict.baseline) and self.verdict.baseline in self.group_of


def unreliable(rows: Sequence[Row]) -> bool:
    """Whether some row's times are unreliable."""
    return not all(map(has_reliable_times, rows))


def plural(noun: str, number: int) -> str:
    """The noun for a number: `query`, `queries`, `class`, `classes`."""
    if number == 1:
        return noun
    return f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}es" if noun.endswith("s") else f"{noun}s"


@dataclass(frozen=True, slots=True)
class Decision:
    """The first lines of every report. `unsettled` is the next step, `meaning` explains the measure."""

    headline: str
    advice: str = ""
    unsettled: str = ""
    meaning: str = ""


def decision(found: Findings) -> Decision:
    """Which row to take and whether to stop, and the look if there are several."""
    said, look = _decision(found), found.verdict.look
    if look is None:
        return said
    ends_here = look.planned and found.verdict.situation in ("not settled", "too few differ")
    rest = "" if ends_here else said.unsettled
    return replace(said, unsettled=" ".join(filter(None, (rest, look_sentence(found.summary, look)))))


def look_sentence(summary: Summary, look: Look) -> str:
    """The number of this look and the next step."""
    if not look.planned:
        later = f"This is look {look.number} at this question; the bounds allow for it."
        return f"{later} They need about twice the queries of a first look."
    which = f"Look {look.number} of {len(look.queries)}."
    if summary.verdict.decided:
        return f"{which} Settled; no further look is needed."
    if look.number == len(look.queries):
        return f"{which} Not settled; the plan ends here."
    units = plural(summary.task.unit, 2)
    return f"{which} Not settled; the next look is at {look.queries[look.number]:,} {units}."


def _decision(found: Findings) -> Decision:
    situation = "all alike" if found.compares_stores else found.verdict.situation
    match situation:
        case "all alike":
            return _stores_only(found)
        case "nothing ran":
            return Decision("Nothing ran.", "Set a key, or add a local row such as minilm.")
        case "older format":
            sentences = found.verdict.sentences
            stored = sentences[0] if sentences is not UNSET and sentences else "There is no verdict."
            return Decision(stored, "An older version wrote this result. Run the line-up again for a verdict.")
        case "not comparable":
            reason = WITHOUT_VERDICT.get(found.verdict.without_verdict, "There is no verdict: rows cannot be compared.")
            return Decision(reason, "Do not choose from this result.")
        case "one row":
            return _one_row(found)
        case "nothing beats random":
            return _nothing_beats_random(found)
        case "only a baseline leads":
            what = "only hashes words" if _leader(found).provider == "fake" else "is only a baseline"
            leader = found.name(found.verdict.leader)
            return Decision(f"{leader}, which {what}, leads; no model is shown to beat it.", _do_not_choose(found))
        case "incumbent did not run":
            name = shorten(found.verdict.baseline)
            return Decision(f"{name}, the incumbent, did not run.", "Do not choose; nothing can be compared with it.")
        case "incumbent beaten":
            return _incumbent_beaten(found)
        case "incumbent kept":
            return _incumbent_kept(found)
        case "clear":
            return _clear(found)
        case "open until graded" | "too few differ" | "within margin" | "not settled":
            return _several(found)
        case _:
            assert_never(situation)


def _leader(found: Findings) -> Row:
    return found.group_of[found.verdict.leader or found.groups[0].first.label].first


def _one_row(found: Findings) -> Decision:
    row = found.groups[0].first
    value, random = row.measures[found.verdict.measure], found.baselines.get("random")
    ends = f" ({interval(value.low, value.high)})" if value.low is not None and value.high is not None else ""
    floor = f"; random is {random:.2f}" if random is not None else ""
    other = "minilm" if row.row_type == "lexical" else "bm25"
    return Decision(
        f"Only {found.name(row.label)} ran. It scores {value.mean:.3f} on {found.measure}{ends}{floor}.",
        f"There is nothing to compare it with. Add a row such as {other} to the line-up.",
    )


def _stores_only(found: Findings) -> Decision:
    """Latency and size are left to choose by."""
    rows, alike = found.summary.ran, found.most_alike.rows
    others = [row for row in rows if row not in alike]
    one_model = len({name_without_store(row) for row in rows}) == 1
    what = f"stores return the same results for {shorten(name_without_store(rows[0]))}"
    what = what if one_model else "rows return the same results"
    number = f"{len(alike)} of {len(rows)}" if others else f"All {len(rows)}"
    headline = f"{number} {what} ({found.measure} {found.mean(alike[0]):.3f})."
    if others:
        means = sorted(found.mean(row) for row in others)
        span = " to ".join(dict.fromkeys(f"{mean:.3f}" for mean in (means[0], means[-1])))
        names = enumeration([shorten(store_name(row)) for row in others])
        headline += f" {names} {'scores' if len(others) == 1 else 'score'} {span}."
    equal = rows if not others or means[0] > found.mean(alike[0]) - NO_NEWS else alike
    choose = f"Choose {f'among the {len(alike)} ' if len(equal) < len(rows) else ''}by latency and size."
    timed = [(row.latency.search.p50, row) for row in equal if row.latency and row.latency.search.p50 is not None]
    if not timed:
        return Decision(headline, choose)
    fastest, row = min(timed, key=lambda pair: pair[0])
    if not has_reliable_times(row):
        return Decision(headline, f"{choose} Timings of this run are unreliable.")
    name = shorten(store_name(row) or row.label if one_model else row.label)
    return Decision(headline, f"{choose} {name} searches fastest ({milliseconds(fastest)} ms p50).")


def _nothing_beats_random(found: Findings) -> Decision:
    random, best = found.baselines.get("random"), found.groups[0]
    floor = f" ({found.measure} {random:.3f})" if random is not None else ""
    scores = f"{found.name(best.first.label)} scores {found.mean(best.first):.3f}"
    who = "Only a baseline" if any(one.beats_random for one in found.verdict.standings.values()) else "Nothing"
    return Decision(
        f"{who} is shown to beat a random order{floor}. {scores}.",
        _do_not_choose(found),
        "Check the task with bakeoff validate, then read the answers on the page.",
    )


def _do_not_choose(found: Findings) -> str:
    outlook = found.verdict.outlook
    below = outlook.unnoticed_below if outlook else None
    power = f" Gains below about {difference(below)} usually go unnoticed." if below else ""
    return f"Do not choose from this result.{power}"


def _incumbent_beaten(found: Findings) -> Decision:
    verdict = found.verdict
    take, incumbent = found.name(verdict.take), found.name(verdict.baseline)
    standing = found.standing(verdict.take or "")
    against = standing.against if standing else None
    by = ""
    if against is not None:
        least = bound_below(against.low) if against.low is not None and against.low > 0 else ""
        sure = f", by at least {least}" if least.strip("0.") else ""
        by = f" by {difference(against.difference)}{sure} ({CONFIDENCE})"
    also = [
        label
        for label, other in verdict.standings.items()
        if other.against is not None and other.against.relation == "better" and found.name(label) != take
    ]
    others = found.names([row.label for group in found.groups for row in group.rows if row.label in also])
    beat = "beats" if len(others) == 1 else "beat"
    more = f"{enumeration(others)} {beat} it too" if others else f"no other row is shown to beat {incumbent}"
    return Decision(f"{take} beats {incumbent} on {found.measure}{by}.", f"Switch to {take}; {more}.")


def _incumbent_kept(found: Findings) -> Decision:
    verdict, incumbent = found.verdict, found.name(found.verdict.baseline)
    rivals = {label: standing.against for label, standing in verdict.standings.items() if standing.against}
    headline = f"Nothing is shown to beat {incumbent} on {found.measure}."
    highest = [against.high for against in rivals.values()]
    if rivals:
        label, against = max(rivals.items(), key=lambda item: item[1].difference)
        gain = signed(against.difference, difference(against.difference))
        most = f", at most {signed(against.high, bound_above(against.high))}" if against.high is not None else ""
        headline += f" {found.name(label)} comes closest ({gain}{most})."
    if open_ := found.names([label for label, against in rivals.items() if against.open]):
        could = f"ungraded documents could put {alternatives(open_)} above it"
        return Decision(headline, f"Keep {incumbent} for now; {could}.", _grade_first(found))
    known = [high for high in highest if high is not None]
    if known and len(known) == len(highest) and max(known) <= verdict.stop_within:
        better = bound_above(max(known)) if max(known) > 0 else ""
        stop = f"no row is better by more than {better}" if better else "no row is better"
        return Decision(headline, f"Keep {incumbent} and stop; {stop} ({CONFIDENCE}).")
    return Decision(headline, f"Keep {incumbent} for now. {_next_step(found, 'a gain')}")


def _clear(found: Findings) -> Decision:
    name, rival = found.take, found.groups[1] if len(found.groups) > 1 else None
    pair = found.pair(_leader(found).label, rival.first.label) if rival else None
    lead = ""
    if rival and found.verdict.look is not None:  # its bounds account for the other looks
        least, most = (getattr(found.standing(rival.first.label), name) for name in ("behind_least", "behind_most"))
        upper = "" if most is None else f" to {bound_above(most)}"
        lead = f"by {bound_below(least)}{upper}"
    elif pair is not None:
        ends = f" ({interval(pair.low, pair.high)})" if pair.low is not None and pair.high is not None else ""
        lead = f"by {difference(pair.difference)}{ends}"
    if found.summary.task.reference:
        stop = f"it leads {lead}" if lead else f"no other row is closer ({CONFIDENCE})"
        return Decision(f"{_closest(found)}.", f"Take {name} and stop; {stop}.", meaning=_meaning(found))
    rest = f" It leads {found.name(rival.first.label)} {lead}." if rival and lead else ""
    return Decision(
        f"{name} is best on {found.measure}.{rest}",
        f"Take {name} and stop; no other row is the best ({CONFIDENCE}).",
    )


def _closest(found: Findings) -> str:
    leader, rest = _leader(found), found.groups[1:]
    second = f", {found.name(rest[0].first.label)} {found.mean(rest[0].first):.3f}" if rest else ""
    return (
        f"{found.name(leader.label)} comes closest to {shorten(found.summary.task.reference)} "
        f"({found.measure} {found.mean(leader):.3f}{second})"
    )


def _meaning(found: Findings) -> str:
    reference, (name, _, cut) = shorten(found.summary.task.reference), found.measure.partition("@")
    if name != "fidelity":
        return ""
    nearest = f"{cut} nearest neighbours" if cut and cut != "1" else "nearest neighbours"
    return f"{found.measure.capitalize()} is the share of {reference}’s {nearest} found, not quality."


def _several(found: Findings) -> Decision:
    """More than one row may be the best."""
    verdict, name = found.verdict, found.take or found.name(found.verdict.leader)
    leads = f"{found.name(verdict.leader)} leads on {found.measure}"
    leads = _closest(found) if found.summary.task.reference else leads
    if verdict.situation == "open until graded":
        return Decision(f"{leads}, but ungraded documents could change that.", *_until_graded(found, name))
    rivals = [other for other in found.names(verdict.best_set) if other != found.name(verdict.leader)]
    apart = f", but {found.asked} cannot separate it from {alternatives(rivals)}"
    headline = f"{leads}{apart if rivals else ''}."
    standing = found.standing(verdict.take or "")
    most = standing.behind_most if standing else None
    meaning = _meaning(found) if found.summary.task.reference else ""
    if verdict.action == "take and stop" and most is not None:
        stop = f"no row is better by more than {bound_above(most)}"
        return Decision(headline, f"Take {name} and stop; {stop} ({CONFIDENCE}).", meaning=meaning)
    better = "" if most is None else f"; another row may be better by up to {bound_above(most)} ({CONFIDENCE})"
    return Decision(headline, f"Take {name} for now{better}.", _what_settles(found), meaning)


def _until_graded(found: Findings, name: str) -> tuple[str, str]:
    turning = found.verdict.turning
    could = "grades that are missing could put another row first"
    if turning:
        first = min(turning, key=lambda winner: winner.documents)
        more = "1 more grade" if first.documents == 1 else f"at most {first.documents:,} more grades"
        could = f"{more} could put {found.name(first.challenger)} first"
    return f"Take {name} for now; {could}.", _grade_first(found)


def _grade_first(found: Findings) -> str:
    task = found.summary.lineup.get("task")
    command = f"bakeoff grade next {quote(task)}" if isinstance(task, str) else "bakeoff grade next TASK"
    return f"{NOT_SETTLED} Grade those pairs first with {command}."


def _what_settles(found: Findings) -> str:
    outlook, (number, unit) = found.verdict.outlook, found.units
    if found.verdict.situation == "too few differ" and outlook is not None:
        tell = "tells" if outlook.differing == 1 else "tell"
        some = f"Only {outlook.differing} of {number:,} {plural(unit, number)} {tell} the rows apart"
        return f"{NOT_SETTLED} {some}; label more {plural(unit, 2)}."
    return f"{NOT_SETTLED} {_next_step(found, 'gaps')}"


def _next_step(found: Findings, what: str) -> str:
    outlook, (have, unit) = found.verdict.outlook, found.units
    units = plural(unit, 2)
    if outlook is None or outlook.queries_for_gap is None:
        return f"Label more {units}."
    low, high = (max(0, number - have) for number in outlook.queries_for_gap)
    if high == 0:
        return f"These {units} should be enough to see {what} of {outlook.gap:g}; the rows may be that close."
    return f"To see {what} of {outlook.gap:g}, label {about(low, high)} more {units}."


def pick_lines(found: Findings) -> list[tuple[str, str, str]]:
    """The picks: use, label, and cost. The table covers stores that score alike."""
    picks = () if found.compares_stores else found.verdict.picks
    return [(_use(pick, found), pick.label, _pick(pick, found)) for pick in picks]


def _use(pick: Pick, found: Findings) -> str:
    if pick.use == "best":
        settled = len(found.names(found.verdict.best_set)) == 1 and found.verdict.situation != "open until graded"
        return "Best" if settled else "Best so far"
    return USES[pick.use]


def _pick(pick: Pick, found: Findings) -> str:
    time = "" if pick.p50_ms is None else f"{milliseconds(pick.p50_ms)} ms p50"
    if pick.use == "best":
        score = f"{found.measure} {found.mean(found.group_of[pick.label].first):.3f}"
        return ", ".join(part for part in (score, time, _price(pick), "offline" if pick.local else "") if part)
    gain = ""
    if pick.use == "cheaper":
        best = next((other for other in found.verdict.picks if other.use == "best"), None)
        paid = f" ({found.name(best.label)} costs {_price(best)})" if best and _price(best) else ""
        gain = f"{_price(pick)}{paid}"
    elif pick.times_faster is not None:
        gain = f"{times(pick.times_faster)} faster" + (f" ({time})" if time else "")
    else:
        gain = time
    return ", ".join(part for part in (gain, _less(pick, found)) if part)


def _price(pick: Pick) -> str:
    documents, queries = pick.usd_per_million_documents, pick.usd_per_thousand_queries
    if documents == 0 and queries == 0:
        return "free"
    return (
        f"{dollars(queries)} per 1,000 queries"
        if queries
        else f"{dollars(documents)} per million documents"
        if documents
        else ""
    )


def _less(pick: Pick, found: Findings) -> str:
    """How much less a pick scores than the best."""
    margin = found.verdict.equivalent_within
    if pick.use == "as good" and margin is not None:
        return f"as good within {margin:g} ({CONFIDENCE})"
    return _scores_less(pick.less_least, pick.less_most, in_set=pick.label in found.verdict.best_set)


def _scores_less(least: float, most: float | None, *, in_set: bool) -> str:
    if most is None:
        return "may score less" if in_set else "scores less, by an unknown amount"
    if in_set:
        return f"may score up to {bound_above(most)} less"
    if least < NO_NEWS:
        return f"scores up to {bound_above(most)} less"
    return f"scores {bound_below(least)} to {bound_above(most)} less"


def verdict_sentences(summary: Summary) -> list[str]:
    """The decision as sentences; for an older result without figures, its stored ones."""
    if summary.verdict.sentences is not UNSET:
        return list(summary.verdict.sentences)
    said = decision(Findings(summary))
    return [part for part in (said.headline, said.advice, said.unsettled, said.meaning) if part]


def advice(summary: Summary) -> list[str]:
    """The picks, one line each."""
    return [f"{use}: {label}, {price}." for use, label, price in pick_lines(Findings(summary))]


def choice_sentence(summary: Summary, choice: Choice) -> str:
    """The choice within the user's limits."""
    if choice.pick is None:
        return f"Nothing that ran is within these limits.{_times_unknown(summary, choice)}"
    row = summary.row(choice.pick.label)
    within = f"{len(choice.feasible)} of {choice.ran} contenders are within the limits."
    return f"{choice.pick.label}: {score_and_price(summary, row)}. {within}{_times_unknown(summary, choice)}"


def score_and_price(summary: Summary, row: Row) -> str:
    """A row's score, and how much less than the best it scores."""
    figure = f"{summary.label(summary.verdict.measure)} {row.measures[summary.verdict.measure].mean:.3f}"
    standing = summary.verdict.standings.get(row.label)
    return figure if standing is None or row.label == summary.verdict.take else f"{figure}, {_behind(standing)}"


def _behind(standing: Standing) -> str:
    return _scores_less(standing.behind_least, standing.behind_most, in_set=standing.mark != "worse")


def _times_unknown(summary: Summary, choice: Choice) -> str:
    for name, labels in choice.untimed.items():
        if labels:
            why = no_time(summary.row(labels[0]), int(name.removeprefix("p")))
            return f" The {name} of {join_names(labels)} is unknown. {why}"
    return ""


def no_time(row: Row, q: int = 50) -> str:
    """Why a row has no p50 or p95 to compare, with a remedy. More rounds do not retime paid models."""
    total, answers = (row.latency.total.n, row.latency.search.n) if row.latency else (0, 0)
    if not (total or answers):
        return f"{row.label} has precomputed answers, so there is no latency to compare."
    needed = SAMPLES_FOR[q]
    if not has_reliable_times(row):
        return f"The timings of {row.label} are unreliable: run again when the machine is idle."
    if row.latency and (kept := row.latency.kept):
        timed = f"{row.label} was timed {kept.when} and is not compared with times of this run"
        return f"{timed}: --time-hosted {needed} times it again and pays for it."
    few = f"{row.label} has too few samples for a p{q} ({total}, {needed} needed)"
    if total >= answers:
        return f"{few}: raise --rounds."
    if total:
        return f"{few}: a paid model is timed only once. --time-hosted {needed} calls it again and pays for it."
    if row.row_type in MADE_OF_OTHERS:
        return f"{row.label} uses rows whose query vectors or scores were cached, so no answer was timed in full."
    cached = f"The query vectors of {row.label} came from the cache, so its answers were not timed"
    return f"{cached}: --time-hosted {needed} times them and pays for it."
