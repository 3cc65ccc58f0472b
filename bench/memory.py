"""The cost of long-term memories at 10,000 of them: saving one, searching, compared with a bare durable file."""

from __future__ import annotations

import os
import random
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Final

from greenroom.adapters.storage.memory_files import MemoryFiles
from greenroom.adapters.storage.text_index import SqliteTextIndex
from greenroom.core.base.ids import memory_id
from greenroom.core.state.knowledge import Memory

GOALS: Final = {
    "save_ms": ("<=", 5.0),
    "save_over_file": ("<=", 6.0),
    "search_ms": ("<=", 20.0),
    "search_ms_chinese": ("<=", 20.0),
    "first_look_s": ("<=", 5.0),
}

COUNT: Final = 10_000
ROUNDS: Final = 100
WORDS: Final = 5_000


def run() -> Mapping[str, float]:
    """Fill a folder, then measure. A floor is a new file with fsync in the same folder."""
    chance = random.Random(7)
    words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(3, 9))) for _ in range(WORDS)]
    weights = [1 / (rank + 1) for rank in range(WORDS)]
    signs = [chr(0x4E00 + chance.randrange(3_000)) for _ in range(2_000)]

    def make(number: int) -> Memory:
        text = " ".join(chance.choices(words, weights, k=60)) + "".join(chance.choices(signs, k=30))
        tags, at = tuple(chance.sample(words[:300], 3)), number * 1000
        return Memory(memory_id=memory_id(at, ""), type="global_long_term", content=text, created_at=at, tags=tags)

    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        index = SqliteTextIndex(home / "index.db")
        memories = MemoryFiles(home, None, lambda: index)
        for number in range(COUNT):
            memories.save(make(number))
        index.remove(str(memories.find_folder("global_long_term")), index.get_stamps(str(home / "global_long_term")))
        begin = time.perf_counter()
        fresh = MemoryFiles(home, None, lambda: index)
        fresh.find(["global_long_term"], limit=1)
        first_look = time.perf_counter() - begin
        new = iter([make(COUNT + number) for number in range(ROUNDS)])
        saved = _measure(lambda: fresh.save(next(new)))
        floor_names = iter(range(ROUNDS))
        floor = _measure(lambda: _write(home / f"floor{next(floor_names)}"))
        queries = iter([" ".join(chance.choices(words, weights, k=3)) for _ in range(ROUNDS)])
        searched = _measure(lambda: fresh.find(["global_long_term"], words=next(queries), limit=20))
        pairs = iter(["".join(chance.choices(signs, k=4)) for _ in range(ROUNDS)])
        chinese = _measure(lambda: fresh.find(["global_long_term"], words=next(pairs), limit=20))
    return {
        "save_ms": saved,
        "save_over_file": saved / floor,
        "search_ms": searched,
        "search_ms_chinese": chinese,
        "first_look_s": first_look,
    }


def _measure(work: Callable[[], object]) -> float:
    """Return the median in milliseconds."""
    times = list[float]()
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        work()
        times.append((time.perf_counter() - begin) * 1000)
    return median(times)


def _write(path: Path) -> None:
    with path.open("wb") as file:
        file.write(b"x" * 600)
        file.flush()
        os.fsync(file.fileno())
