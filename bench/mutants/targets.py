"""Which modules are mutated, and which test files are their own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

HARNESS = Path("harness/bakeoff")
PROVIDERS = Path("providers/bakeoff_providers")


@dataclass(frozen=True, slots=True)
class Target:
    """Modules (a folder stands for all in it) and the test files that answer for them."""

    name: str
    sources: tuple[Path, ...]
    tests: tuple[str, ...]
    in_processes: tuple[str, ...] = ()  # tests that call the modules in processes of their own: always run

    def modules(self, root: Path) -> list[Path]:
        """Its files, relative to the root."""
        files = []
        for source in self.sources:
            files += sorted((root / source).rglob("*.py")) if (root / source).is_dir() else [root / source]
        return [file.relative_to(root) for file in files]


TARGETS = (
    Target(
        "measures",
        (HARNESS / "evaluation", HARNESS / "extensions/measures"),
        (
            "evaluation/test_score_examples.py",
            "evaluation/test_ranked_grades.py",
            "evaluation/test_measures.py",
            "evaluation/test_incomplete.py",
            "evaluation/test_unjudged.py",
            "evaluation/test_own_measure.py",
            "evaluation/test_score.py",
            "tasks/test_run_reader.py",
        ),
    ),
    Target(
        "statistics",
        (
            HARNESS / "statistics",
            HARNESS / "extensions/corpus_size/growth.py",
            HARNESS / "extensions/several_results/nested.py",
            HARNESS / "extensions/testsets/ppi.py",
        ),
        (
            "statistics/test_tests.py",
            "statistics/test_intervals.py",
            "extensions/corpus_size/test_growth.py",
            "statistics/test_design.py",
            "statistics/test_equivalence.py",
            "extensions/testsets/test_ppi.py",
            "extensions/several_results/test_nested.py",
            "statistics/test_small_samples.py",
            "statistics/test_stratified.py",
            "statistics/test_averaging.py",
            "statistics/test_pareto.py",
            "statistics/test_best_set.py",
            "statistics/test_incumbent.py",
            "statistics/test_guarded.py",
            "statistics/test_detectable.py",
        ),
    ),
    Target(
        "rankings",
        (HARNESS / "core/ranking.py",),
        ("core/test_ranking.py", "core/test_run.py", "evaluation/test_ranked_grades.py", "tasks/test_run_reader.py"),
    ),
    Target(
        "exact search",
        (HARNESS / "search/brute_force.py", HARNESS / "search/exact_search.py", HARNESS / "search/hits.py"),
        ("search/test_brute_force.py", "search/test_hits.py", "search/test_loss.py"),
    ),
    Target(
        "fusion",
        (HARNESS / "search/fusion.py", HARNESS / "systems/fused.py"),
        ("search/test_fusion.py", "search/test_searchers.py"),
    ),
    Target(
        "cache",
        (
            *(HARNESS / "embedding" / f"{name}.py" for name in ("cache", "space", "shards")),
            HARNESS / "calls/key_index.py",
            HARNESS / "extensions/testsets/answers.py",
        ),
        (
            "embedding/test_cache.py",
            "embedding/test_sharing.py",
            "extensions/testsets/test_ask.py",
            "calls/test_paid.py",
        ),
    ),
    Target(
        "embedding",
        (
            *(HARNESS / "embedding" / f"{name}.py" for name in ("embed", "unit")),
            *(HARNESS / "calls" / f"{name}.py" for name in ("paid", "retry", "budget")),
        ),
        ("calls/test_paid.py", "embedding/test_money.py", "embedding/test_embed.py", "embedding/test_sharing.py"),
        ("test_two_processes_at_once_ask_for_each_text_once",),
    ),
    Target(
        "budgets and prices",
        (HARNESS / "calls/budget.py", PROVIDERS / "cards.py"),
        ("embedding/test_money.py", "embedding/test_embed.py", "providers/test_cards.py"),
    ),
    Target(
        "failures",
        (HARNESS / "systems/failures.py", PROVIDERS / "failures.py"),
        ("providers/test_failures.py", "running/test_failures.py"),
    ),
    Target("eligibility", (HARNESS / "extensions/kinds/profiles.py",), ("extensions/kinds/test_eligibility.py",)),
    Target(
        "picks",
        (HARNESS / "results/picks.py", HARNESS / "core/printable.py"),
        ("results/test_picks.py", "core/test_printable.py"),
    ),
    Target("gate", (HARNESS / "results/gate.py",), ("results/test_compare.py",)),
    Target(
        "averaging",
        (HARNESS / "statistics/averaging.py",),
        (
            "statistics/test_averaging.py",
            "results/test_breakdowns.py",
            "results/test_restate.py",
            "results/test_verdict.py",
            "results/test_unjudged.py",
        ),
    ),
)
