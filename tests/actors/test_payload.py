import json
import time

import pytest

from greenroom.actors.payload import MAX_INLINE_CHARS, is_large, move_to_blob
from greenroom.adapters.storage.memory import MemoryLog
from greenroom.core.base.records import Data
from greenroom.core.ports.executor import Outcome

LONG = "word " * 20_000


async def lightened(result: Data) -> tuple[Data, Data]:
    """What the log gets, and what the blob holds."""
    log = MemoryLog()
    outcome = await move_to_blob(Outcome(result=result), log)
    light = outcome.result or {}
    assert outcome.blobs == (light["blob"],)
    body = await log.get_blob(str(light["blob"]))
    assert light["bytes"] == len(body)
    assert len(json.dumps(dict(light))) < 2 * MAX_INLINE_CHARS, "what goes into the log is small"
    return light, json.loads(body)


@pytest.mark.parametrize(
    "result",
    [
        {"output": LONG},
        {"output": [LONG]},
        {"output": {"a": {"b": [1, LONG]}}},
        {"text": "", "calls": [{"id": "c1", "name": "write", "arguments": {"content": LONG}}]},
        {"output": ["a word"] * 10_000},
        {"output": list(range(40_000))},
        {f"key {number}": "a few words" for number in range(5_000)},
        {"output": {f"key {number}": number for number in range(20_000)}},
        {"one": "x" * 20_000, "two": "y" * 20_000},
    ],
    ids=["text", "list", "nested", "call", "many", "numbers", "keys", "names", "total"],
)
async def test_whatever_makes_a_result_large_it_goes_to_the_blobs_whole(result: Data) -> None:
    assert is_large(result)
    light, whole = await lightened(result)
    assert whole == result
    assert set(light) <= {*result, "blob", "bytes"}


@pytest.mark.parametrize(
    "result",
    [
        {},
        {"output": "x" * 30_000},
        {"output": ["x" * 10_000, "y" * 10_000], "n": 3},
        {"output": [[[]]], "none": None, "yes": True},
        {"text": "hello", "calls": [{"id": "c1", "name": "f", "arguments": {"a": 1.5}}]},
    ],
)
def test_a_small_result_stays_in_the_log(result: Data) -> None:
    assert not is_large(result)


async def test_the_shape_stays_and_only_long_texts_are_cut() -> None:
    calls = [{"id": f"c{number}", "name": "write", "arguments": {"content": LONG, "path": "a"}} for number in range(30)]
    light, _ = await lightened({"text": "I write.", "calls": calls, "turn": 3})
    assert (light["text"], light["turn"]) == ("I write.", 3)
    kept = light["calls"]
    assert isinstance(kept, list)
    assert [(one["id"], one["name"], one["arguments"]["path"]) for one in kept] == [
        (f"c{number}", "write", "a") for number in range(30)
    ]
    assert all(LONG.startswith(one["arguments"]["content"]) for one in kept)


async def test_a_text_that_is_not_to_blame_is_left_whole() -> None:
    light, _ = await lightened({"output": LONG, "summary": "s" * 5_000})
    assert light["summary"] == "s" * 5_000
    assert light["output"] == LONG[:2_000]


async def test_a_long_list_is_shown_by_its_beginning() -> None:
    light, _ = await lightened({"output": list(range(40_000)), "exit": 0})
    assert str(light["output"]).startswith("[0, 1, 2, 3")
    assert light["exit"] == 0


def test_what_contains_itself_is_large_and_not_endless() -> None:
    circle: list[object] = []
    circle.append(circle)
    assert is_large({"output": circle})


def test_a_deep_result_does_not_exhaust_the_stack() -> None:
    deep: object = LONG
    for _ in range(5_000):
        deep = [deep]
    assert is_large({"output": deep})


@pytest.mark.no_cover
def test_looking_at_a_small_flat_result_takes_next_to_no_time() -> None:
    """It is on the path of every step: a tenth of the time that writing it as JSON takes, the best of several runs."""
    result = {"output": "x" * 500, "path": "notes.md", "lines": 12}

    def took(work: object) -> float:
        assert callable(work)
        best = 1.0
        for _ in range(20):
            begun = time.perf_counter()
            for _ in range(1_000):
                work(result)
            best = min(best, time.perf_counter() - begun)
        return best

    assert took(is_large) < took(json.dumps) / 2
