"""How often a canary alarms about a provider that did not change: python bench/canary.py [--repeats 1000]

Every repeat records and checks anew, with calls of its own (five and three, in other orders and batches): MiniLM and
wordllama as they run here, and a hosted provider (the real SDK against a server on this machine) whose answers differ
from call to call by noise common to the call, noise of each value, and rounding to half precision now and then.
Prints alarms, and how many of a hundred checks they may be (95%, Clopper and Pearson). Exits 1 beyond one of a hundred.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bakeoff.extensions.production.canary import DEFAULT_TEXTS, CanaryText, check, record
from bakeoff_providers import PROVIDERS
from bakeoff_providers.base import Provider
from scipy.stats import beta

from tests.extensions.production.noisy_server import NoisyServer
from tests.wire import PROXIES

TEXTS = 16
ALLOWED = 0.01


def alarms(provider: Provider, texts: list[CanaryText], repeats: int) -> int:
    """Recordings and checks, each of calls of its own."""
    return sum(
        check(record(provider, texts, {}, seed=2 * number), provider).figures["changed"] for number in range(repeats)
    )


def most(found: int, repeats: int) -> float:
    """The share that so many alarms may be of, at 95%."""
    return float(beta.ppf(0.95, found + 1, repeats - found)) if found < repeats else 1.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--only", choices=["minilm", "wordllama", "hosted"])
    options = parser.parse_args()
    for name in PROXIES:
        os.environ.pop(name, None)
    os.environ["OPENAI_API_KEY"] = "none-is-needed-here"
    texts = [text for text in DEFAULT_TEXTS if len(text.text) < 60][:TEXTS]
    failed = False
    with NoisyServer(seed=7) as server:
        providers: dict[str, Callable[[], Provider]] = {
            "minilm": lambda: PROVIDERS.create("minilm", threads=1),
            "wordllama": lambda: PROVIDERS.create("wordllama"),
            "hosted": lambda: PROVIDERS.create("openai", base_url=server.base("openai"), dimensions=64),
        }
        for name, create in providers.items():
            if options.only not in (None, name):
                continue
            start = time.perf_counter()
            provider = create()
            found = alarms(provider, texts, options.repeats)
            provider.close()
            server.requests.clear()
            failed |= found > ALLOWED * options.repeats
            print(
                f"{name:<10} {found} alarms in {options.repeats} checks of {len(texts)} texts: "
                f"at most {most(found, options.repeats):.2%} (95%), {time.perf_counter() - start:.0f} s",
                flush=True,
            )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
