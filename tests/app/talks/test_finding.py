"""The chat that is meant."""

import pytest

from greenroom.adapters.storage.memory import MemoryLog
from greenroom.app.conversation.chat import chats, find_chat
from greenroom.app.conversation.names import ASK
from greenroom.app.conversation.start import FIRST, found_alone, found_chat
from greenroom.app.runtime import Runtime
from greenroom.core.base.amounts import Limits
from greenroom.core.base.errors import Refused, StoreFault
from greenroom.core.base.ids import TeamId
from greenroom.core.rules.intents import CancelTask
from greenroom.core.state.world import World
from tests.app.talks.voice import cast


async def test_the_last_chat_is_the_newest_open_one_whatever_ran_since() -> None:
    runtime = Runtime(MemoryLog())
    old = await found_chat(runtime, cast(), "One.", limits=Limits())
    over = await found_chat(runtime, cast(), "Two.", limits=Limits())
    await runtime.ask(over, CancelTask(task_id=FIRST))
    other = await found_alone(runtime, ASK, cast(), "Three?", limits=Limits())
    assert await find_chat(runtime, "last") == old
    assert await find_chat(runtime, old[:4]) == old
    assert await chats(runtime) == [over, old]
    assert await chats(runtime, most=1) == [over]
    with pytest.raises(Refused, match=f"'{other}' is no chat"):
        await find_chat(runtime, other)
    with pytest.raises(Refused, match="is over"):
        await find_chat(runtime, over)
    with pytest.raises(Refused, match="There is no team 'nobody'"):
        await find_chat(runtime, "nobody")
    await runtime.close()


@pytest.mark.req("AG-42")
async def test_no_chat_or_one_that_cannot_be_read_is_no_error_for_who_wants_the_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runtime = Runtime(MemoryLog())
    assert await find_chat(runtime, "last") is None
    await found_chat(runtime, cast(), "One.", limits=Limits())

    async def damaged(_: Runtime, team: TeamId, at: int | None = None) -> World:
        raise StoreFault(f"{team} is damaged.")

    monkeypatch.setattr(Runtime, "world", damaged)
    assert await find_chat(runtime, "last") is None
    monkeypatch.undo()
    await runtime.close()
