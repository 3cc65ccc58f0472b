import asyncio
from collections.abc import AsyncGenerator
from functools import partial

import pytest

from greenroom.adapters.models.retry import Gate, Patience, Retrying
from greenroom.core.base.records import evolve
from greenroom.core.ports.model import VERDICTS, Failed, FaultKind, Finished, ModelEvent, Retried, TextDelta, Usage
from greenroom.testing.conformance.models import asking
from tests.adapters.models.asked import GOOD, Played, Time, fault

NONE = Patience(retries=0)


def made(model: Played, time: Time) -> Retrying:
    """Patient, with no chance in it."""
    return Retrying(
        model, Gate(clock=time, sleep=time.sleep), Patience(), clock=time, sleep=time.sleep, chance=lambda: 0.5
    )


async def events(model: Retrying, attempt: int = 1) -> list[ModelEvent]:
    """All that comes of one request."""
    request = asking()
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


@pytest.mark.parametrize("kind", [kind for kind, verdict in VERDICTS.items() if verdict != "retry"])
async def test_what_asking_again_cannot_mend_is_told_at_once(kind: FaultKind) -> None:
    model, time = Played([fault(kind)], GOOD), Time()
    assert await events(made(model, time)) == [fault(kind)]
    assert time.naps == []


async def test_the_pause_is_random_and_never_shorter_than_the_provider_says() -> None:
    time = Time()
    waits: set[float] = set()
    for chance in (0.0, 0.3, 0.99):
        model = Retrying(
            Played([fault("rate")], GOOD),
            Gate(clock=time, sleep=time.sleep),
            Patience(),
            clock=time,
            sleep=time.sleep,
            chance=partial(float, chance),
        )
        waits |= {event.wait for event in await events(model) if isinstance(event, Retried)}
    assert len(waits) == 3
    assert all(0.5 <= wait < 1.5 for wait in waits)
    found = await events(made(Played([fault("rate", 17.0)], GOOD), time))
    assert [event.wait for event in found if isinstance(event, Retried)] == [17.0]


@pytest.mark.req("AG-124")
async def test_all_tries_together_have_an_end() -> None:
    time = Time()
    assert (await events(made(Played([fault("rate", 200.0)]), time)))[-1] == fault("rate", 200.0)
    assert time.naps == [200.0], "a second pause would be over the 300 seconds"


async def test_what_may_have_cost_something_is_left_to_a_new_attempt() -> None:
    half: list[ModelEvent] = [TextDelta(text="Ye"), fault("network")]
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
    gate = Gate(clock=time, sleep=time.sleep)
    model = Played([fault("rate", 9.0)], GOOD)
    retrying = Retrying(model, gate, NONE, clock=time, sleep=time.sleep)
    patient = Retrying(model, gate, Patience(), clock=time, sleep=time.sleep)
    await events(patient)
    assert time.now >= 109.0
    assert await events(retrying) == list(GOOD)


async def test_cancelling_while_it_waits_ends_everything() -> None:
    model = Played([fault("rate", 30.0)])
    task = asyncio.create_task(events(Retrying(model, Gate(), Patience())))
    for _ in range(50):
        await asyncio.sleep(0)
    assert model.closed
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_whoever_stops_listening_ends_the_answer() -> None:
    model = Played([TextDelta(text="a"), TextDelta(text="b"), Finished()])
    stream = made(model, Time()).stream(asking())
    await anext(stream)
    assert isinstance(stream, AsyncGenerator)
    await stream.aclose()
    assert model.closed == 1


async def test_name_card_and_price_are_the_models() -> None:
    model = Played(GOOD)
    retrying = made(model, Time())
    assert (retrying.name, retrying.card, retrying.price(2, 3)) == ("fake:m", model.card, 5)
