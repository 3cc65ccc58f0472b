"""The same agent behind another face: who is asked, who answers and who watches is replaced without a change to it."""

import asyncio
from pathlib import Path

import pytest

from greenroom import Agent, Asked, Called, Greenroom, ModelRequest, Result, Returned, Said
from tests.abilities.skills import talks
from tests.abilities.skills.talks import Played, calls, says


class Window:
    """A user interface of one's own: a person sits behind it, and sees all that is put on it."""

    def __init__(self, answers: dict[str, bool | str]) -> None:
        self.shown: list[str] = []
        self._answers = answers
        self._clicks: asyncio.Queue[tuple[str, asyncio.Future[bool | str]]] = asyncio.Queue()

    async def approve(self, asked: Asked) -> bool | str:
        """A dialog, which is open until somebody clicks."""
        answered: asyncio.Future[bool | str] = asyncio.get_running_loop().create_future()
        self.shown.append(f"{'question' if asked.words else 'dialog'}: {asked.tool}")
        await self._clicks.put((asked.tool, answered))
        return await answered

    async def person(self) -> None:
        """Reads and clicks."""
        while True:
            tool, answered = await self._clicks.get()
            answered.set_result(self._answers[tool])

    async def show(self, house: Greenroom, agent: Agent[str], text: str) -> str:
        """A whole run on this window."""
        house.events.subscribe("before_tool_call", lambda tool, **_: self.shown.append(f"busy: {tool}"))
        output, person = "", asyncio.create_task(self.person())
        async for heard in house.stream(agent, text, approve=self.approve):
            match heard:
                case Called(tool=name) | Returned(tool=name):
                    self.shown.append(f"{type(heard).__name__.lower()}: {name}")
                case Said(text=words):
                    self.shown.append(f"said: {words}")
                case Result():
                    output = heard.output
                case _:
                    pass
        person.cancel()
        return output


@pytest.mark.req("AG-193")
async def test_all_that_people_see_and_say_is_replaced_without_a_change_to_the_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    work = tmp_path / "work"
    work.mkdir()

    def play(request: ModelRequest) -> talks.Answer:
        told = [one.content for one in request.messages if one.role == "tool"]
        if not told:
            return calls("ask_user", question="Which name?")
        if len(told) == 1:
            return calls("execute_script", "c2", script=f"touch {told[0]}")
        return says("Made." if "Denied" not in told[-1] else "Not made.")

    agent = Agent("ann", groups=["human", "command"], model=Played(play))
    kind, strict = (
        Window({"ask_user": "a.txt", "execute_script": True}),
        Window({"ask_user": "b", "execute_script": "No."}),
    )
    async with Greenroom(memory=True, workspace=work) as house:
        assert await kind.show(house, agent, "Make a file.") == "Made."
    async with Greenroom(memory=True, workspace=work) as house:
        assert await strict.show(house, agent, "Make a file.") == "Not made."
    assert [one.name for one in work.iterdir()] == ["a.txt"]
    asked = ["question: ask_user", "busy: ask_user", "called: ask_user", "returned: ask_user", "dialog: execute_script"]
    done = ["busy: execute_script", "called: execute_script", "returned: execute_script", "said: Made."]
    assert sorted(kind.shown) == sorted(asked + done)
    assert "busy: execute_script" not in strict.shown
