"""Learn src/greenroom/teamwork/weights.json from labelled requests, and measure it on those held out.

`uv run --with numpy --with scipy python tools/train_classifier.py` takes some minutes. The labelled requests are in
tests/teamwork; of them and of the phrases there, requests with several wishes and with conditions are made. The
requests that are held out are only measured. A type is asked for if one clause asks for it, so each clause has its own
chance.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import get_args

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

from greenroom.teamwork.classify import SCALE, classify, find_language, read_features
from greenroom.teamwork.plan import TaskType

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "tests" / "teamwork"
WEIGHTS = ROOT / "src" / "greenroom" / "teamwork" / "weights.json"
LETTERS = {"bug-fix": "B", "documentation": "D", "feature-development": "F", "refactoring": "R", "testing": "T"}
COMBINED, JOINED, DENIED = 1200, 1500, 1000
PENALTY = 1.0
KEPT = 12_000
"""How many features of a language are kept: those that tell most."""
Row = tuple[str, str]


def read_requests(name: str) -> list[Row]:
    """Return the requests of a file with the letters of their types."""
    pairs = [line.split(" ", 1) for line in (DATA / name).read_text("utf-8").splitlines()]
    return [(text.replace("\\n", "\n"), letters.strip("-")) for letters, text in pairs]


def read_phrases(language: str) -> dict[str, list[Row]]:
    """Return the phrases of a language by their section: say, do, with and not."""
    sections: dict[str, list[Row]] = {}
    section = list[Row]()
    for line in (DATA / f"phrases_{language}.txt").read_text("utf-8").splitlines():
        if line.startswith("## "):
            section = sections.setdefault(line[3:], [])
        elif line:
            letters, text = line.split(" ", 1)
            section.append((text, letters.strip("-")))
    return sections


def make_requests(language: str) -> Iterator[Row]:
    """Yield the phrases, alone and combined."""
    parts, chance, english = read_phrases(language), random.Random(1), language == "en"
    yield from (*parts["say"], *parts["do"])
    wishes = [row for row in parts["do"] if row[1]]
    bugs = [row for row in parts["say"] if row[1] == "B"]
    joins = [", ", " ", "; ", ", "] if english else ["，"]
    ands = (
        [" and ", ", then ", ". ", "; ", ", and ", ". Also "]
        if english
        else ["，", "。", "；", "，再", "，并", "，然后", "，同时"]
    )
    for _ in range(COMBINED):
        text, kinds = chance.choice(wishes)
        kind_of_request = chance.random()
        if kind_of_request < 0.25:
            other, more = chance.choice([row for row in wishes if row[1] != kinds])
            yield text + chance.choice(ands) + other[0].lower() + other[1:], kinds + more
            continue
        if kind_of_request < 0.4:
            text = chance.choice(bugs)[0] + chance.choice(
                [". Fix that", ". Please fix"] if english else ["。修一下", "。请修复"]
            )
            kinds = "B"
        for _ in range(1 + (chance.random() < 0.2)):
            other, more = chance.choice([row for row in parts["with"] if row[1] not in kinds])
            text, kinds = text + chance.choice(joins) + other, kinds + more
        yield text, kinds
    for _ in range(DENIED):
        text, kinds = chance.choice(wishes)
        yield (
            text + chance.choice([", ", ". ", "; "] if english else list("，。；")) + chance.choice(parts["not"])[0],
            kinds,
        )


def join_requests(rows: Sequence[Row], language: str) -> Iterator[Row]:
    """Yield pairs of short requests as one."""
    chance, ends = random.Random(2), [". ", "; ", "\n- "] if language == "en" else ["。", "；", "\n"]
    short = [row for row in rows if row[1] and len(row[0]) < 80 and row[0][-1] not in "?？"]
    for _ in range(JOINED):
        one, other = chance.sample(short, 2)
        yield one[0].rstrip(".。") + chance.choice(ends) + other[0], "".join(sorted({*one[1], *other[1]}))


def learn(rows: Sequence[Row]) -> dict[str, list[int]]:
    """Return the weights of the features that tell most."""
    requests = [
        [{"bias", *found.shared, *clause} for clause in found.clauses or [frozenset()]]
        for found in (read_features(text) for text, _ in rows)
    ]
    counts = Counter(feature for clauses in requests for feature in set().union(*clauses))
    names = sorted(name for name, count in counts.items() if count > 1)
    weights = learn_names(rows, requests, names)
    strongest = np.argsort(-np.abs(weights).max(axis=0))[:KEPT]
    names = sorted({"bias", *(names[at] for at in strongest)})
    columns = np.rint(learn_names(rows, requests, names) * SCALE).astype(int)
    return {name: [int(value) for value in columns[:, at]] for at, name in enumerate(names)}


def learn_names(rows: Sequence[Row], requests: Sequence[Sequence[set[str]]], names: Sequence[str]) -> np.ndarray:
    """Return a weight for each type and name."""
    number = {name: at for at, name in enumerate(names)}
    clauses = [sorted(number[name] for name in clause if name in number) for found in requests for clause in found]
    owner = np.repeat(np.arange(len(rows)), [len(found) for found in requests])
    ends = np.cumsum([0, *map(len, clauses)])
    matrix = csr_matrix((np.ones(ends[-1]), np.concatenate(clauses), ends), shape=(len(clauses), len(names)))
    wanted = [
        np.array([letter in kinds for _, kinds in rows], float)
        for letter in map(LETTERS.__getitem__, get_args(TaskType))
    ]
    wanted.append(np.array([not kinds for _, kinds in rows], float))
    return np.array([learn_one(matrix, owner, truth) for truth in wanted])


def learn_one(matrix: csr_matrix, owner: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Return the weights for one type."""

    def measure(weights: np.ndarray) -> tuple[float, np.ndarray]:
        sums = matrix @ weights
        missed = np.minimum(np.bincount(owner, -np.logaddexp(0, sums), minlength=len(truth)), -1e-9)
        found = 1 - np.exp(missed)
        loss = -(np.log(found + 1e-12) * truth + missed * (1 - truth)).sum() + PENALTY / 2 * (weights @ weights)
        slope = truth * np.exp(missed) / (found + 1e-12) - (1 - truth)
        return loss, matrix.T @ (slope[owner] * (-1 / (1 + np.exp(-sums)))) + PENALTY * weights

    return minimize(measure, np.zeros(matrix.shape[1]), jac=True, method="L-BFGS-B", options={"maxiter": 150}).x


def report(name: str) -> None:
    """Print how many requests of a file are answered, and how many of those answers are right."""
    for language in ("en", "zh"):
        rows = [row for row in read_requests(name) if find_language(row[0]) == language]
        found = [(classify(text), kinds) for text, kinds in rows]
        sure = [({LETTERS[kind] for kind in answer.types}, set(kinds)) for answer, kinds in found if answer.is_sure]
        right = sum(answer == kinds for answer, kinds in sure)
        print(f"{name} {language}: {len(rows)}, {len(sure) / len(rows):.3f} answered, {right / len(sure):.3f} right")


def main() -> None:
    """Learn from all but the requests that are held out."""
    rows, tables = read_requests("requests_train.txt"), []
    for language in ("en", "zh"):
        spoken = [row for row in rows if find_language(row[0]) == language]
        weights = learn([*spoken, *make_requests(language), *join_requests(spoken, language)])
        entries = [
            f"{json.dumps(name, ensure_ascii=False)}:{str(row).replace(' ', '')}" for name, row in weights.items()
        ]
        tables.append(f'"{language}": {{\n' + ",\n".join(entries) + "\n}")
    WEIGHTS.write_text("{\n" + ",\n".join(tables) + "\n}\n", encoding="utf-8")
    for name in ("requests_held_out.txt", "requests_train.txt"):
        report(name)


if __name__ == "__main__":
    main()
