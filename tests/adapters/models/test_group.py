import pytest

from greenroom.adapters.models.retry import Group
from greenroom.core.ports.model import Failed, FaultKind, Finished, Model, ModelCard, ModelEvent, Retried, TextDelta
from greenroom.testing.conformance.models import asking
from tests.adapters.models.asked import GOOD, Played, Time, fault

SECOND: tuple[ModelEvent, ...] = (TextDelta(text="Yes."), Finished(by="other:m"))


class Unpriced(Played):
    """Nobody knows what it costs."""

    def price(self, read: int, written: int) -> int | None:
        return None


def group(*models: Model, time: Time | None = None) -> Group:
    """A group of these."""
    return Group("both", models, clock=time or Time())


async def events(model: Group) -> list[ModelEvent]:
    """All that comes of one request."""
    return [event async for event in model.stream(asking())]


@pytest.mark.parametrize("kind", ["auth", "credit", "model", "rate", "overloaded", "server", "too_long", "tls"])
async def test_another_one_answers_when_the_first_cannot(kind: FaultKind) -> None:
    first, other = Played([fault(kind)]), Played(SECOND, name="other:m")
    found = await events(group(first, other))
    assert isinstance(found[0], Retried)
    assert found[1:] == list(SECOND)


async def test_who_failed_rests_for_a_minute() -> None:
    time = Time()
    first, other = Played([fault("server")], GOOD), Played(SECOND, name="other:m")
    both = group(first, other, time=time)
    await events(both)
    assert await events(both) == list(SECOND)
    time.now += 61
    assert await events(both) == list(GOOD)
    assert await events(both) == list(GOOD)


@pytest.mark.parametrize("kind", ["request", "filter", "too_large"])
async def test_what_is_wrong_with_the_request_is_asked_of_nobody_else(kind: FaultKind) -> None:
    other = Played(SECOND, name="other:m")
    assert await events(group(Played([fault(kind)]), other)) == [fault(kind)]
    assert other.asked == []


async def test_an_answer_that_broke_off_is_not_continued_by_another_within_the_same_attempt() -> None:
    first, other = Played([TextDelta(text="Ye"), fault("network")]), Played(SECOND, name="other:m")
    both = group(first, other)
    end = (await events(both))[-1]
    assert isinstance(end, Failed)
    assert end.again
    assert await events(both) == list(SECOND), "the next attempt is the other one's"


async def test_when_all_fail_the_last_fault_is_told() -> None:
    found = await events(group(Played([fault("server")]), Played([fault("auth")], name="other:m")))
    assert found[-1] == fault("auth")


def test_a_group_can_do_what_all_of_its_models_can() -> None:
    small = ModelCard(window=1000, output=100, images=False)
    large = ModelCard(window=9000, output=900, images=True)
    both = group(Played(GOOD, card=large), Played(GOOD, card=small))
    assert (both.card.window, both.card.output, both.card.images) == (1000, 100, False)
    assert both.price(1, 2) == 3
    assert group(Played(GOOD), Unpriced(GOOD)).price(1, 2) is None
