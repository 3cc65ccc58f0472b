"""Models around models: the gate, retries, groups that stand in for one another, and one that is made late."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path, PosixPath
from typing import Any

import pytest

from greenroom.adapters.models.retry import LazyModel, ModelGroup, RateLimiter, RetryingModel, RetryPolicy, RetryTime
from greenroom.core.base.records import evolve
from greenroom.core.ports.model import (
    FAULT_ACTIONS,
    Failed,
    FaultKind,
    Finished,
    Model,
    ModelCard,
    ModelEvent,
    ModelTextDelta,
    Retried,
    Usage,
)
from greenroom.testing.conformance.models import collect_events, make_request, text_of
from greenroom.testing.scripted import Cue, ScriptedModel, ScriptedReply
from tests.adapters.models.asked import GOOD, Played, Time, fault


async def turn(gate: RateLimiter, name: str, said: list[str], go: asyncio.Event | None = None) -> None:
    """Go in, say so, and stay until told."""
    async with gate:
        said.append(name)
        if go is not None:
            await go.wait()


async def settle() -> None:
    """Let everybody do what they can."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_no_more_than_may_are_inside_and_the_others_come_in_their_order() -> None:
    gate, go = RateLimiter(parallel=2), asyncio.Event()
    said: list[str] = []
    tasks = [asyncio.create_task(turn(gate, str(n), said, go)) for n in range(6)]
    await settle()
    assert said == ["0", "1"]
    go.set()
    await asyncio.gather(*tasks)
    assert said == ["0", "1", "2", "3", "4", "5"]


async def test_so_many_begin_in_a_minute_and_no_more() -> None:
    time = Time()
    gate = RateLimiter(per_minute=3, clock=time, sleep=time.sleep)
    said: list[str] = []
    await asyncio.gather(*(turn(gate, str(n), said) for n in range(7)))
    assert said == [str(n) for n in range(7)]
    assert time.now == pytest.approx(220.0), "three at once, three after a minute, one after two"


async def test_a_shut_gate_opens_by_itself() -> None:
    time = Time()
    gate = RateLimiter(clock=time, sleep=time.sleep)
    said: list[str] = []
    gate.pause(5.0)
    gate.pause(2.0)
    await asyncio.gather(turn(gate, "a", said), turn(gate, "b", said))
    assert (said, time.now) == (["a", "b"], 105.0)


async def test_an_open_gate_costs_no_waiting() -> None:
    time = Time()
    gate = RateLimiter(clock=time, sleep=time.sleep)
    said: list[str] = []
    for n in range(100):
        await turn(gate, str(n), said)
    assert time.naps == []


async def test_when_all_leave_at_once_the_gate_stands_open() -> None:
    gate, go = RateLimiter(parallel=1), asyncio.Event()
    said: list[str] = []
    tasks = [asyncio.create_task(turn(gate, str(n), said, go)) for n in range(5)]
    await settle()
    for task in tasks:
        task.cancel()
    ended = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(one, asyncio.CancelledError) for one in ended)
    await asyncio.wait_for(turn(gate, "later", said), 5)
    assert said == ["0", "later"]


@pytest.mark.parametrize("when", ["in the line", "just let in", "inside"])
async def test_whoever_leaves_takes_nobodys_place(when: str) -> None:
    gate, go = RateLimiter(parallel=1), asyncio.Event()
    said: list[str] = []
    first = asyncio.create_task(turn(gate, "first", said, go))
    await settle()
    leaver = asyncio.create_task(turn(gate, "leaver", said, go))
    await settle()
    last = asyncio.create_task(turn(gate, "last", said))
    await settle()
    if when == "in the line":
        leaver.cancel()
        await settle()
        go.set()
    elif when == "just let in":
        go.set()
        await asyncio.gather(first)  # its end lets the leaver in, which has not noticed yet
        leaver.cancel()
    else:
        first.cancel()
        await settle()
        leaver.cancel()
    await asyncio.gather(first, leaver, return_exceptions=True)
    await asyncio.wait_for(last, 5)
    assert said[-1] == "last"


NONE = RetryPolicy(retries=0)


def made(model: Played, time: Time) -> RetryingModel:
    """Patient, with no chance in it."""
    return RetryingModel(
        model,
        RateLimiter(clock=time, sleep=time.sleep),
        RetryPolicy(),
        clock=time,
        sleep=time.sleep,
        jitter=lambda: 0.5,
    )


async def events(model: RetryingModel, attempt: int = 1) -> list[ModelEvent]:
    request = make_request()
    return [event async for event in model.stream(evolve(request, purpose=evolve(request.purpose, attempt=attempt)))]


@pytest.mark.req("AF-11", "AF-12", "AF-28")
async def test_a_fault_that_may_pass_is_tried_again_with_growing_pauses() -> None:
    model, time = Played([fault("overloaded")], [fault("server")], [fault("rate")], GOOD), Time()
    found = await events(made(model, time))
    assert [event.wait for event in found if isinstance(event, Retried)] == [1.0, 2.0, 4.0]
    assert found[-2:] == list(GOOD)
    assert len(model.asked) == 4


@pytest.mark.req("AF-11", "AF-28")
async def test_after_three_retries_the_fault_is_told() -> None:
    model, time = Played([fault("overloaded")]), Time()
    found = await events(made(model, time))
    assert found[-1] == fault("overloaded")
    assert len(model.asked) == 4


@pytest.mark.parametrize("kind", [kind for kind, verdict in FAULT_ACTIONS.items() if verdict != "retry"])
async def test_what_asking_again_cannot_mend_is_told_at_once(kind: FaultKind) -> None:
    model, time = Played([fault(kind)], GOOD), Time()
    assert await events(made(model, time)) == [fault(kind)]
    assert time.naps == []


async def test_the_pause_is_random_and_never_shorter_than_the_provider_says() -> None:
    time = Time()
    waits: set[float] = set()
    for chance in (0.0, 0.3, 0.99):
        model = RetryingModel(
            Played([fault("rate")], GOOD),
            RateLimiter(clock=time, sleep=time.sleep),
            RetryPolicy(),
            clock=time,
            sleep=time.sleep,
            jitter=partial(float, chance),
        )
        waits |= {event.wait for event in await events(model) if isinstance(event, Retried)}
    assert len(waits) == 3
    assert all(0.5 <= wait < 1.5 for wait in waits)
    found = await events(made(Played([fault("rate", 17.0)], GOOD), time))
    assert [event.wait for event in found if isinstance(event, Retried)] == [17.0]


@pytest.mark.req("AG-124")
async def test_all_tries_together_have_an_end() -> None:
    time = Time()
    end = (await events(made(Played([fault("rate", 200.0)]), time)))[-1]
    assert isinstance(end, Failed)
    assert evolve(end, why="fake:m: rate.") == fault("rate", 200.0)
    assert end.why.startswith("fake:m: rate. fake:m asked to wait until ")
    assert time.naps == [200.0], "a second pause would be over the 300 seconds"


async def test_what_may_have_cost_something_is_left_to_a_new_attempt() -> None:
    half: list[ModelEvent] = [ModelTextDelta(text="Ye"), fault("network")]
    paid: list[ModelEvent] = [Usage(input=3), fault("server")]
    for answer in (half, paid, [fault("cut_off")]):
        model = Played(answer, GOOD)
        found = await events(made(model, Time()))
        assert isinstance(found[-2], Retried)
        end = found[-1]
        assert isinstance(end, Failed)
        assert end.again
        assert len(model.asked) == 1


async def test_the_tries_of_a_step_are_counted_over_its_attempts_and_anew_after_the_last() -> None:
    model, time = Played([fault("cut_off")]), Time()
    retrying = made(model, time)
    for _ in range(2):
        ends = [(await events(retrying, attempt))[-1] for attempt in (1, 2, 3, 4)]
        assert [end.again for end in ends if isinstance(end, Failed)] == [True, True, True, False]


async def test_the_time_of_all_attempts_together_has_an_end_too() -> None:
    model, time = Played([fault("cut_off")]), Time()
    retrying = made(model, time)
    first = (await events(retrying))[-1]
    assert isinstance(first, Failed)
    assert first.again
    time.now += 400
    second = (await events(retrying, 2))[-1]
    assert isinstance(second, Failed)
    assert not second.again, "300 seconds are over"


async def test_a_provider_that_wants_to_be_left_alone_is_left_alone_by_everybody() -> None:
    time = Time()
    gate = RateLimiter(clock=time, sleep=time.sleep)
    model = Played([fault("rate", 9.0)], GOOD)
    retrying = RetryingModel(model, gate, NONE, clock=time, sleep=time.sleep)
    patient = RetryingModel(model, gate, RetryPolicy(), clock=time, sleep=time.sleep)
    await events(patient)
    assert time.now >= 109.0
    assert await events(retrying) == list(GOOD)


async def test_cancelling_while_it_waits_ends_everything() -> None:
    model = Played([fault("rate", 30.0)])
    task = asyncio.create_task(events(RetryingModel(model, RateLimiter(), RetryPolicy())))
    for _ in range(50):
        await asyncio.sleep(0)
    assert model.closed
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_whoever_stops_listening_ends_the_answer() -> None:
    model = Played([ModelTextDelta(text="a"), ModelTextDelta(text="b"), Finished()])
    stream = made(model, Time()).stream(make_request())
    await anext(stream)
    assert isinstance(stream, AsyncGenerator)
    await stream.aclose()
    assert model.closed == 1


async def test_name_card_and_price_are_the_models() -> None:
    model = Played(GOOD)
    retrying = made(model, Time())
    assert (retrying.name, retrying.card, retrying.price(2, 3)) == ("fake:m", model.card, 5)


SECOND: tuple[ModelEvent, ...] = (ModelTextDelta(text="Yes."), Finished(by="other:m"))


class Unpriced(Played):
    """Nobody knows what it costs."""

    def price(self, read: int, written: int) -> int | None:
        return None


def group(*models: Model, time: Time | None = None) -> ModelGroup:
    return ModelGroup("both", models, clock=time or Time())


async def events_of(model: ModelGroup) -> list[ModelEvent]:
    return [event async for event in model.stream(make_request())]


@pytest.mark.parametrize("kind", ["auth", "credit", "model", "rate", "overloaded", "server", "too_long", "tls"])
async def test_another_one_answers_when_the_first_cannot(kind: FaultKind) -> None:
    first, other = Played([fault(kind)]), Played(SECOND, name="other:m")
    found = await events_of(group(first, other))
    assert isinstance(found[0], Retried)
    assert found[1:] == list(SECOND)


async def test_who_failed_rests_for_a_minute() -> None:
    time = Time()
    first, other = Played([fault("server")], GOOD), Played(SECOND, name="other:m")
    both = group(first, other, time=time)
    await events_of(both)
    assert await events_of(both) == list(SECOND)
    time.now += 61
    assert await events_of(both) == list(GOOD)
    assert await events_of(both) == list(GOOD)


@pytest.mark.parametrize("kind", ["request", "filter", "too_large"])
async def test_what_is_wrong_with_the_request_is_asked_of_nobody_else(kind: FaultKind) -> None:
    other = Played(SECOND, name="other:m")
    assert await events_of(group(Played([fault(kind)]), other)) == [fault(kind)]
    assert other.asked == []


async def test_an_answer_that_broke_off_is_not_continued_by_another_within_the_same_attempt() -> None:
    first, other = Played([ModelTextDelta(text="Ye"), fault("network")]), Played(SECOND, name="other:m")
    both = group(first, other)
    end = (await events_of(both))[-1]
    assert isinstance(end, Failed)
    assert end.again
    assert await events_of(both) == list(SECOND), "the next attempt is the other one's"


async def test_when_all_fail_the_last_fault_is_told() -> None:
    found = await events_of(group(Played([fault("server")]), Played([fault("auth")], name="other:m")))
    assert found[-1] == fault("auth")


def test_a_group_can_do_what_all_of_its_models_can() -> None:
    small = ModelCard(window=1000, output=100, images=False)
    large = ModelCard(window=9000, output=900, images=True)
    both = group(Played(GOOD, card=large), Played(GOOD, card=small))
    assert (both.card.window, both.card.output, both.card.images) == (1000, 100, False)
    assert both.price(1, 2) == 3
    assert group(Played(GOOD), Unpriced(GOOD)).price(1, 2) is None


async def test_it_has_a_name_and_a_price_before_it_is_made_and_is_made_once() -> None:
    made: list[str] = []

    def make() -> ScriptedModel:
        made.append("made")
        return ScriptedModel([Cue(reply=ScriptedReply(text="yes"))])

    late = LazyModel("openai:m", ModelCard(window=5000), lambda read, written: read + written, make)
    assert (late.name, late.card.window, late.price(1, 2), made) == ("openai:m", 5000, 3, [])
    said = [text_of(await collect_events(late, make_request("?"))) for _ in range(2)]
    assert (said, made) == (["yes", "yes"], ["made"])


def test_a_model_can_be_named_and_priced_before_what_speaks_to_it_is_loaded() -> None:
    code = (
        "import sys\n"
        "from greenroom.app.settings.schema import Settings\n"
        "from greenroom.app.model_registry import ModelRegistry\n"
        "model = ModelRegistry(Settings(), {'OPENAI_API_KEY': 'sk-test'}).get_model('openai:gpt-5')\n"
        "print(model.name, model.price(1000, 1000) > 0, 'aiohttp' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["openai:gpt-5", "True", "False"]


def held(model: Played, time: Time, path: Path) -> RetryingModel:
    """A model as a new process makes it, with its time in this file."""
    gate, policy = RateLimiter(clock=time, sleep=time.sleep), RetryPolicy()
    return RetryingModel(model, gate, policy, RetryTime(path, clock=time), clock=time, sleep=time.sleep)


async def test_no_process_asks_before_the_time_that_the_provider_named(tmp_path: Path) -> None:
    time, path, model = Time(), tmp_path / "new" / "time", Played([fault("rate", 600.0)], GOOD)
    for _ in range(2):
        end = (await events(held(model, time, path)))[-1]
        assert isinstance(end, Failed)
        assert "asked to wait until" in end.why
    assert (len(model.asked), time.naps) == (1, [])
    time.now += 400.0
    assert text_of(await events(held(model, time, path))) == "Yes."
    assert time.naps == [pytest.approx(200.0)], "what is left is waited for"


async def test_the_others_that_wait_at_the_gate_are_not_sent_either(tmp_path: Path) -> None:
    time, model = Time(), Played([fault("rate", 600.0)])
    retrying = RetryingModel(model, RateLimiter(parallel=1), RetryPolicy(), RetryTime(tmp_path / "t", clock=time))
    found = await asyncio.gather(*(events(retrying) for _ in range(5)))
    assert [type(one[-1]) for one in found] == [Failed] * 5
    assert len(model.asked) == 1


@pytest.mark.parametrize("text", ["", "soon", "nan", "inf", "1e300", "-5", "\udcff"])
async def test_a_time_that_was_not_stored_by_us_holds_nothing_back(tmp_path: Path, text: str) -> None:
    path = tmp_path / "time"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    assert await RetryTime(path).compute_wait() == 0.0


async def test_a_time_that_cannot_be_stored_holds_for_this_process(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    retry_time = RetryTime(tmp_path / "file" / "time", clock=lambda: 50.0)
    await retry_time.postpone(10.0**9)
    await retry_time.postpone(1.0)
    assert await retry_time.compute_wait() == 3600.0


async def test_a_shorter_wait_of_another_process_does_not_end_a_longer_one(tmp_path: Path) -> None:
    path = tmp_path / "time"
    first, second, third = (RetryTime(path, clock=lambda: 50.0) for _ in range(3))
    await first.postpone(600.0)
    await second.postpone(5.0)
    assert await third.compute_wait() == 600.0
    assert await second.compute_wait() == 600.0


@pytest.mark.parametrize("text", ["soon", "inf", "1e300"])
async def test_a_time_that_was_not_stored_by_us_is_replaced(tmp_path: Path, text: str) -> None:
    path = tmp_path / "time"
    path.write_text(text)
    retry_time = RetryTime(path, clock=lambda: 50.0)
    await retry_time.postpone(5.0)
    assert await retry_time.compute_wait() == await RetryTime(path, clock=lambda: 50.0).compute_wait() == 5.0


async def test_the_time_is_stored_and_read_beside_the_event_loop(tmp_path: Path) -> None:
    threads: set[int] = set()

    class File(PosixPath):
        def open(self, *args: Any, **options: Any) -> Any:
            threads.add(threading.get_ident())
            return super().open(*args, **options)

    retry_time = RetryTime(File(tmp_path / "time"))
    await retry_time.postpone(5.0)
    assert await retry_time.compute_wait() > 0
    assert threads
    assert threading.get_ident() not in threads


async def test_the_file_is_not_read_for_each_of_many_calls(tmp_path: Path) -> None:
    time, path, reads = Time(), tmp_path / "time", list[Path]()

    class File(PosixPath):
        def open(self, *args: Any, **options: Any) -> Any:
            reads.append(self)
            return super().open(*args, **options)

    waiting, other = RetryTime(File(path), clock=time), RetryTime(path, clock=time)
    for number, seconds in enumerate((0.0, 5.0, 600.0), start=1):
        await other.postpone(seconds)
        time.now += 0.2
        waits = [await waiting.compute_wait() for _ in range(50)]
        assert waits == [pytest.approx(max(seconds - 0.2, 0.0))] * 50
        assert len(reads) == number
    await other.postpone(900.0)
    await waiting.postpone(1.0)
    assert await RetryTime(path, clock=time).compute_wait() == pytest.approx(900.0), "the later time stays"


async def test_waiting_for_the_time_of_others_uses_up_no_attempt(tmp_path: Path) -> None:
    time, path = Time(), tmp_path / "time"
    other, naps = RetryTime(path, clock=time), iter([20.0] * 5)

    async def sleep(seconds: float) -> None:
        await time.sleep(seconds)
        for again in naps:
            await other.postpone(again)
            return

    await other.postpone(20.0)
    model = Played([fault("server")], [fault("server")], [fault("server")], GOOD)
    gate, retry_time = RateLimiter(clock=time, sleep=time.sleep), RetryTime(path, clock=time)
    retrying = RetryingModel(model, gate, RetryPolicy(), retry_time, clock=time, sleep=sleep)
    assert text_of(await events(retrying)) == "Yes."
    assert len(model.asked) == 4
