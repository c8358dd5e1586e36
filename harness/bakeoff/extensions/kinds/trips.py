"""The generated trips: a town of 24 places, people with habits, and three models that guess the next place.

    python -m bakeoff.extensions.kinds.trips queries/trips

Each of 90 people has a home, a workplace and three favourites. A day is a walk: from home, usually to work, then to
favourites or anywhere, with a pull back home. Days 1 to 12 are for training, day 13 for testing: given the place
before, which is next? Everything comes from Python's random.Random(SEED), whose stream is the same in every version.

majority scores places by how often they come next in training; markov by how often they follow the place before (plus
one half each); noisy is markov's logarithm with Gaussian noise. For each model seed the training days are drawn anew,
with replacement, and the noise with them.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from itertools import pairwise
from math import log
from pathlib import Path

import msgspec
import numpy as np

from bakeoff.core.files import write_atomic

SEED, MODEL_SEEDS = 2026, (1, 2, 3)
PEOPLE, TRAINING_DAYS = 90, 12
NOISE = 1.5
PLACES = (
    "bakery", "bank", "beach", "bookshop", "cafe", "cinema", "clinic", "factory", "gym", "harbour", "library", "market",
    "museum", "north flats", "office park", "old town", "park", "pool", "pub", "school", "south flats", "stadium",
    "station", "west flats",
)  # fmt: skip
HOMES, WORK = ("north flats", "old town", "south flats", "west flats"), ("factory", "harbour", "office park", "school")
Walk = list[str]


def walks(seed: int = SEED) -> list[list[Walk]]:
    """One walk per person and day."""
    rng = random.Random(seed)
    people = []
    for _ in range(PEOPLE):
        home, work, favourites = rng.choice(HOMES), rng.choice(WORK), rng.sample(PLACES, 3)
        people.append([_day(rng, home, work, favourites) for _ in range(TRAINING_DAYS + 1)])
    return people


def _day(rng: random.Random, home: str, work: str, favourites: Sequence[str]) -> Walk:
    walk = [home]
    for step in range(rng.randint(2, 5)):
        draw = rng.random()
        if step == 0:
            after = work if draw < 0.75 else rng.choice(favourites)
        elif draw < 0.35:
            after = home
        else:
            after = rng.choice(favourites) if draw < 0.85 else rng.choice(PLACES)
        if after != walk[-1]:
            walk.append(after)
    return walk


def steps(days: Sequence[Walk]) -> list[tuple[str, str]]:
    """Pairs of consecutive places."""
    return [(here, after) for walk in days for here, after in pairwise(walk)]


def scores(training: Sequence[Walk], asked: Sequence[tuple[str, str]], seed: int) -> dict[str, np.ndarray]:
    """The scores of the three models for every place and question, trained with this seed."""
    rng = random.Random(seed)
    number = {place: at for at, place in enumerate(PLACES)}
    follows = np.zeros((len(PLACES), len(PLACES)))
    for here, after in steps([rng.choice(training) for _ in training]):
        follows[number[here], number[after]] += 1
    rows = [number[here] for here, _ in asked]
    markov = follows[rows] + 0.5
    noise = np.array([[rng.gauss(0, NOISE) for _ in PLACES] for _ in asked])
    noisy = np.array([[log(value) for value in row] for row in markov.tolist()]) + noise
    majority = np.tile(follows.sum(axis=0), (len(asked), 1))
    return {"majority": majority, "markov": markov, "noisy": noisy}


def write(folder: Path) -> None:
    """Write the files of the task and of the models' answers."""
    people = walks()
    training = [walk for days in people for walk in days[:TRAINING_DAYS]]
    asked = [(person, step) for person, days in enumerate(people) for step in steps(days[TRAINING_DAYS:])]
    lines = []
    for at, (person, (here, after)) in enumerate(asked):
        text = f"person {person} is at the {here}; where next?"
        lines.append(msgspec.json.encode({"query": f"t{at:03d}", "answer": after, "text": text}))
    write_atomic(folder / "trips.jsonl", b"\n".join(lines) + b"\n")
    write_atomic(folder / "places.txt", "\n".join(PLACES) + "\n")
    write_atomic(folder / "training.txt", "\n".join(after for _, after in steps(training)) + "\n")
    for seed in MODEL_SEEDS:
        for model, values in scores(training, [step for _, step in asked], seed).items():
            np.save(folder / f"{model}-{seed}.npy", values.astype(np.float32))


if __name__ == "__main__":
    write(Path(sys.argv[1]))
