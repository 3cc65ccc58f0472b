"""An organisation that stays: neither what a manager reads nor a step's cost grows with all that was ever said."""

import pytest

from tests.organisation.crowd import EVERY, LONG_LIFE, SHORT_LIFE, Life, lasting


def bounded(life: Life, messages: int) -> None:
    """What must hold of it."""
    assert life.messages >= messages
    assert life.tasks == life.agents == -(-messages // 2 // EVERY)
    assert life.newest_is_told
    assert life.first_wish_is_told, "what people said is what is kept longest"
    assert max(life.prompts) <= 4 * life.window
    assert max(life.later(life.prompts)) <= 1.1 * max(life.early(life.prompts))


@pytest.mark.no_cover
async def test_the_prompts_of_a_manager_stay_as_long_as_they_are() -> None:
    life = await lasting(SHORT_LIFE)
    bounded(life, SHORT_LIFE)
    assert life.sums >= 4


@pytest.mark.prove
@pytest.mark.timeout(600)
async def test_after_two_thousand_messages_a_manager_reads_no_more_and_a_step_takes_no_longer() -> None:
    life = await lasting(LONG_LIFE)
    bounded(life, LONG_LIFE)
    longest, growth = max(life.prompts), life.growth
    print(
        f"\n{life.messages} messages, {life.sums} sums: prompts of {longest:,} bytes at most, steps {growth:.2f} times"
    )
    assert growth < 1.5
