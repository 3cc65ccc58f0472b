"""`Agent`: who does the work, and calls without `await` for scripts and notebooks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Generic, TypeVar

from greenroom.app.conversation.chat import Exchange
from greenroom.app.library.approval import Approve
from greenroom.app.library.blueprint import Blueprint, Tools
from greenroom.app.library.greenroom import Greenroom
from greenroom.app.library.results import Heard, Result, T
from greenroom.app.library.run import Talk
from greenroom.app.library.workplace import everybody
from greenroom.core.ports.model import Model

S = TypeVar("S")


@asynccontextmanager
async def at_once(house: Greenroom | None, agent: Blueprint[Any]) -> AsyncIterator[Greenroom]:
    """The house that is given, which stays open, or one for this once: in this folder, if the agent works in one."""
    if house is not None:
        yield house
        return
    works = any(one.gear.of_house for one in everybody(agent).values())
    async with Greenroom(workspace="." if works else None) as here:
        yield here


def synchronously(work: Coroutine[Any, Any, S]) -> S:
    """Run it to its end; beside a loop that runs already (a notebook's) in a thread of its own."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="greenroom-run") as aside:
        return aside.submit(asyncio.run, work).result()


class SyncTalk(Generic[T]):
    """A conversation without `await`, kept in `.greenroom/`; `id` is its name there, once something was said."""

    def __init__(self, agent: Blueprint[T], *, resume: str, approve: Approve | None, context: object) -> None:
        self.id = resume
        self._agent = agent
        self._approve = approve
        self._context = context

    def say(self, text: str) -> Result[T]:
        """Say something and wait for the answer."""
        return synchronously(self._say(text))

    def exchanges(self) -> list[Exchange]:
        """What was said and answered so far, oldest first."""
        return synchronously(self._exchanges())

    async def _say(self, text: str) -> Result[T]:
        async with self._open() as talk:
            try:
                return await talk.say(text)
            finally:
                self.id = talk.id

    async def _exchanges(self) -> list[Exchange]:
        async with self._open() as talk:
            return await talk.exchanges()

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[Talk[T]]:
        async with (
            at_once(None, self._agent) as house,
            house.chat(self._agent, resume=self.id, approve=self._approve, context=self._context) as talk,
        ):
            yield talk


def bring_along(agent: Blueprint[Any]) -> None:
    """Give an agent those that it calls and was not given, and them theirs. They share the tools that they name."""
    from greenroom.app.agents.finding import load_agent

    known = {one.name: one for one in (agent, *agent.agents)}
    todo = [agent]
    for one in todo:
        for name in one.spec.calls:
            if name not in known:
                spec = load_agent(Path.cwd(), name)
                known[name] = Blueprint(
                    name, spec=spec, tools=[each for each in agent.tools if each.name in spec.tools]
                )
                todo.append(known[name])
        one.agents = tuple(known[name] for name in one.spec.calls)


class Agent(Blueprint[T]):
    """An agent: its name, what it is told, which tools and which other agents it may call, and what it answers with.

    `model` is a `provider:model`, a role (`strong`, `fast`), a group, a `Model` of one's own; none is the normal one.
    With `output_type` (a dataclass, a pydantic model, any type that JSON knows) its answer is a value of that type;
    what does not fit is asked for again, at most `repairs` times.

    `tools` are functions, and tools of the house by name; `groups` are more of these, in a house with a workspace. Of
    all that, `use_tools` lists those that it may have (an empty list: the usual ones, where nothing else is said), and
    with `disable_file_edit` it has none that edit. `execute_tool_confirm` has all its calls asked about, or none more
    than usual, whatever the house says.

    What it does it does in `house`, else in one that is kept in `.greenroom/`. See `Greenroom` for `resume`, `approve`
    and `context`.
    """

    @classmethod
    def from_file(
        cls,
        source: str | Path,
        *,
        output_type: type[T] | None = None,
        model: str | Model = "",
        tools: Tools = (),
        agents: Sequence[Blueprint[Any]] = (),
    ) -> Agent[T]:
        """The agent of a file: a path, or a name that `greenroom agents list` knows. The agents it calls come along."""
        from greenroom.app.agents.finding import load_agent, read_agent

        path = Path(source)
        named = isinstance(source, str) and path.suffix != ".md" and path.name == source
        spec = load_agent(Path.cwd(), str(source)) if named else read_agent(path)
        agent = cls(spec.name, spec=spec, output_type=output_type, model=model, tools=tools, agents=agents)
        bring_along(agent)
        return agent

    async def run(
        self,
        text: str = "",
        *,
        house: Greenroom | None = None,
        resume: str = "",
        approve: Approve | None = None,
        context: object = None,
    ) -> Result[T]:
        """Give it something to do and wait for the result."""
        async with at_once(house, self) as here:
            return await here.run(self, text, resume=resume, approve=approve, context=context)

    async def stream(
        self,
        text: str = "",
        *,
        house: Greenroom | None = None,
        resume: str = "",
        approve: Approve | None = None,
        context: object = None,
    ) -> AsyncIterator[Heard[T]]:
        """The same, told as it happens: words, thoughts, calls and their results, and last of all the result."""
        async with at_once(house, self) as here:
            async for heard in here.stream(self, text, resume=resume, approve=approve, context=context):
                yield heard

    def run_sync(
        self,
        text: str = "",
        *,
        resume: str = "",
        approve: Approve | None = None,
        context: object = None,
    ) -> Result[T]:
        """`run` for scripts and notebooks."""
        return synchronously(self.run(text, resume=resume, approve=approve, context=context))

    @asynccontextmanager
    async def chat(
        self,
        *,
        house: Greenroom | None = None,
        resume: str = "",
        approve: Approve | None = None,
        context: object = None,
    ) -> AsyncIterator[Talk[T]]:
        """A conversation with it: `async with agent.chat() as talk: await talk.say(…)`."""
        async with (
            at_once(house, self) as here,
            here.chat(self, resume=resume, approve=approve, context=context) as talk,
        ):
            yield talk

    def chat_sync(self, *, resume: str = "", approve: Approve | None = None, context: object = None) -> SyncTalk[T]:
        """`chat` for scripts and notebooks: `talk = agent.chat_sync(); talk.say(…)`."""
        return SyncTalk(self, resume=resume, approve=approve, context=context)
