"""`Greenroom`: where agents work. A folder with a log in it, or only memory; the models that can be asked."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self
from weakref import WeakKeyDictionary

from greenroom.abilities.skills.talk.transcript import Transcripts
from greenroom.adapters.storage.memory import MemoryLog
from greenroom.app.conversation.chat import Chat
from greenroom.app.conversation.start import FIRST, found_alone
from greenroom.app.kit import Kit
from greenroom.app.library.approval import Approve, Confirm, Deciding, by_confirming
from greenroom.app.library.blueprint import Blueprint
from greenroom.app.library.events import TASK_STARTED, EventBus
from greenroom.app.library.results import (
    RUN,
    TALK,
    Executed,
    Heard,
    Result,
    RunInfo,
    T,
    executed_in,
    listed,
    refuse,
    telling_of,
)
from greenroom.app.library.run import EARLY, Following, Run, Talk
from greenroom.app.library.workplace import HandsOf, HouseTerms, Ready, Workplace, confirmed_of, everybody, kit_of
from greenroom.app.lookup import LAST
from greenroom.app.model_registry import Provisions
from greenroom.app.runtime import Runtime
from greenroom.app.settings.home import VARIABLE, home_folder, tell_git
from greenroom.app.toolset.by_hand import ended_step
from greenroom.core.base.amounts import Limits
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.ids import AgentId, TeamId
from greenroom.core.ports.model import Models, ToolSpec
from greenroom.core.state.team import Team

FOLDER: Final = ".greenroom"
SHOWN: Final = 50


class Greenroom:
    """`async with Greenroom() as house:` keeps all in `.greenroom/` here; `Greenroom(memory=True)` forgets it all.

    `max_cost` (dollars), `max_tokens` and `max_time` (seconds of work) bound each run; without them the settings say.
    `models` are asked instead of those of the settings, and have no limits but those in `limits`.
    `events` are callbacks by name, around all that is done here. An agent with more tools than `filter_tools_above` is
    first asked which of them its task needs (0: never).

    `workspace` is the folder in which agents have the tools of the house that they name; without one there are none.
    `rules` say what they may do there (`allow command pytest`), beside what the person has agreed to. With
    `execute_tool_confirm` every call is asked about; `non_interactive` says that nobody is there, so that what would be
    asked is not done. None leaves both to the settings. `confirm_callback` is asked where there is no `approve`: with a
    tip and a default, and answers yes or no.

    Wherever an agent is given something to do, `approve` decides about calls that need a yes, `context` is what tools
    get that want a `Context`, and `resume` goes on with what was cut off: an id, or `"last"` for the agent's newest.
    """

    def __init__(
        self,
        home: str | Path | None = None,
        *,
        memory: bool = False,
        models: Models | None = None,
        limits: Limits | None = None,
        max_cost: float | None = None,
        max_tokens: int | None = None,
        max_time: float | None = None,
        filter_tools_above: int = 30,
        workspace: str | Path | None = None,
        rules: Sequence[str] = (),
        execute_tool_confirm: bool | None = None,
        non_interactive: bool | None = None,
        confirm_callback: Confirm | None = None,
    ) -> None:
        if memory and home is not None:
            raise WorldFault("A house is either in memory or in a folder. Give one of `memory` and `home`.")
        named = Path(home) if home is not None else None
        self.home = None if memory else home_folder(named or _here())
        self._given = models
        self._bounds = limits
        self._provisions = Provisions()
        flags = {
            "limits.cost": max_cost,
            "limits.tokens": max_tokens,
            "limits.time": max_time,
            "execute_tool_confirm": execute_tool_confirm,
            "non_interactive": non_interactive,
        }
        self._provisions.give({name: value for name, value in flags.items() if value is not None})
        self._place = _place(workspace, rules)
        self._confirm = confirm_callback
        self.events = EventBus()
        self._filter_above = filter_tools_above
        self._runtime: Runtime | None = None
        self._kits: dict[TeamId, Kit] = {}
        self._forget_ready()

    async def __aenter__(self) -> Self:
        kits = {RUN: self._kit, TALK: self._kit}
        self._forget_ready()
        if self.home is None:
            self._runtime = Runtime(MemoryLog(), kits=kits)
        else:
            self._runtime = await Runtime.open(self.home, kits=kits)
            if self.home.name == FOLDER:
                tell_git(self.home)
        return self

    def _forget_ready(self) -> None:
        """What agents work with refers to the runtime, which is another one each time that the house is opened."""
        self._made_ready = {solo: WeakKeyDictionary[Blueprint[Any], Ready]() for solo in (True, False)}

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        runtime, self._runtime = self._runtime, None
        self._forget_ready()
        try:
            if runtime is not None:
                await runtime.close()
        finally:
            await self._provisions.close()

    @property
    def runtime(self) -> Runtime:
        """The facade below: all teams, their events and their archive."""
        if self._runtime is None:
            raise WorldFault("The house is not open. Use it in `async with Greenroom() as house:`.")
        return self._runtime

    @property
    def models(self) -> Models:
        """Who is asked."""
        return self._given or self._provisions

    async def run(
        self,
        agent: Blueprint[T],
        text: str = "",
        *,
        resume: str = "",
        approve: Approve | None = None,
        context: object = None,
    ) -> Result[T]:
        """Give an agent something to do and wait for the result."""
        async with self._started(agent, text, resume, approve, context, 0) as run:
            return await run.result()

    async def stream(
        self,
        agent: Blueprint[T],
        text: str = "",
        *,
        resume: str = "",
        approve: Approve | None = None,
        context: object = None,
    ) -> AsyncIterator[Heard[T]]:
        """The same, told as it happens; the result comes last."""
        async with self._started(agent, text, resume, approve, context, None) as run:
            async for heard in run.heard():
                yield heard

    def start(
        self,
        agent: Blueprint[T],
        text: str = "",
        *,
        resume: str = "",
        approve: Approve | None = None,
        context: object = None,
    ) -> AbstractAsyncContextManager[Run[T]]:
        """A run that has begun, to be told more or ended for good. Leaving it stops it; `resume` goes on with it."""
        return self._started(agent, text, resume, approve, context, EARLY)

    @asynccontextmanager
    async def _started(
        self,
        agent: Blueprint[T],
        text: str,
        resume: str,
        approve: Approve | None,
        context: object,
        early: int | None,
    ) -> AsyncIterator[Run[T]]:
        if bool(text.strip()) == bool(resume):
            raise WorldFault("Give either a text, which is not empty, or `resume`, a run to go on with.")
        ready = await self._ready(agent, solo=True, context=context)
        following = self._following(approve, early)
        if resume:
            team = await self._known(agent, resume, RUN)
        else:
            team = await found_alone(
                self.runtime,
                RUN,
                ready.cast,
                text,
                limits=self._limits(),
                work_with=ready.kit,
                opened=following.attach,
            )
        run = Run(agent, team, following)
        self._kits[team] = ready.kit
        with telling_of(lambda: team):
            try:
                if resume:
                    await run.begin()
                yield run
            finally:
                await run.close()
                self._kits.pop(team, None)
                ready.forget(team)

    async def resume(
        self, agent: Blueprint[T], run: str, *, approve: Approve | None = None, context: object = None
    ) -> Result[T]:
        """Go on with a run that was cut off, where it was; the agent is the one it was begun with."""
        return await self.run(agent, resume=run, approve=approve, context=context)

    @asynccontextmanager
    async def chat(
        self,
        agent: Blueprint[T],
        *,
        resume: str = "",
        approve: Approve | None = None,
        context: object = None,
    ) -> AsyncIterator[Talk[T]]:
        """A conversation with an agent, which stays open: `async with house.chat(agent) as talk: await talk.say(…)`."""
        ready = await self._ready(agent, solo=False, context=context)
        chat = Chat(self.runtime, agent=AgentId(agent.name))
        if resume:
            chat.team = await self._known(agent, resume, TALK)
            self._kits[chat.team] = ready.kit

        async def found(text: str) -> None:
            team = await chat.found(ready.cast, text, limits=self._limits(), kit=TALK)
            self._kits[team] = ready.kit
            self.events.emit(TASK_STARTED, run=team, task=FIRST)

        talk = Talk(agent, chat, self._following(approve), found)
        try:
            yield talk
        finally:
            await talk.close()
            if chat.team is not None:
                self._kits.pop(chat.team, None)
                ready.forget(chat.team)

    async def runs(self, agent: Blueprint[T] | None = None, *, most: int = SHOWN) -> list[RunInfo]:
        """The runs and conversations that are kept here, of this agent or of all, newest first."""
        return await listed(self.runtime, agent=agent.name if agent is not None else "", most=most)

    async def executed(self, run: str) -> Executed:
        """Which tools a run or a conversation has executed, and how often."""
        return await executed_in(self.runtime, TeamId(run))

    @property
    def notes(self) -> tuple[str, ...]:
        """What the workspace has in files, packages and MCP servers that agents here do not get, and why."""
        return self._place.notes

    def tools_of(self, agent: Blueprint[Any]) -> Sequence[ToolSpec]:
        """What an agent's model is told of its tools here."""
        return self._place.specs(agent)

    async def _ready(self, agent: Blueprint[T], *, solo: bool, context: object) -> Ready:
        """What the agent works with, and who takes part; what is wrong with that is said before anything is begun.

        Without a workspace and a context it is the same for all its runs, until the person changes their rules.
        """
        rules, known = self._place.rules, self._made_ready[solo].get(agent)
        if known is not None and context is None and known.rules == rules:
            return known
        if self._given is None:
            await self._provisions.look_around()
        agents, transcripts = everybody(agent), Transcripts()
        await self._place.meet(agents.values())
        kit = kit_of(
            agents,
            self.models,
            self.events,
            self._hands(agents),
            transcripts,
            solo=solo,
            context=context,
            filter_above=self._filter_above,
            approvals_expire=self._provisions.loaded.settings.patience,
        )
        ready = Ready(kit=kit, cast=self._place.cast(agents), forget=transcripts.forget, rules=rules)
        if self._place.root is None and context is None:
            self._made_ready[solo][agent] = ready
        return ready

    def _hands(self, agents: Mapping[str, Blueprint[Any]]) -> HandsOf:
        """Makes the tools of a run, under what is set about asking."""
        settings = self._provisions.loaded.settings
        terms = HouseTerms(
            find=partial(ended_step, self.runtime),
            settings=settings,
            confirmed=confirmed_of(agents, house=settings.execute_tool_confirm),
            secrets=self._provisions.keys(),
        )
        return lambda own, models: self._place.hands(own, models, terms)

    def _following(self, approve: Approve | None, early: int | None = EARLY) -> Following:
        unattended = self._provisions.loaded.settings.non_interactive
        asked = approve or (by_confirming(self._confirm) if self._confirm is not None else None)
        deciding = Deciding(self.runtime, None if unattended else asked, self._place.keep)
        return Following(self.runtime, self.events, deciding, unattended=unattended, early=early)

    async def _known(self, agent: Blueprint[T], name: str, kit: str) -> TeamId:
        """What is to go on, if it can."""
        what = "conversation with" if kit == TALK else "run of"
        if name == LAST:
            mine = await listed(self.runtime, agent=agent.name, most=SHOWN)
            left = [one.run for one in mine if one.talk == (kit == TALK) and not one.over]
            if not left:
                raise WorldFault(f"There is no {what} the agent {agent.name!r} that could go on.")
            name = left[0]
        world = await self.runtime.world(TeamId(name))
        if world.team.kit != kit or AgentId(agent.name) not in world.agents:
            raise WorldFault(f"{name!r} is no {what} the agent {agent.name!r}. `house.runs()` lists what there is.")
        self._place.refuse_other(world.team)
        if kit == TALK and FIRST not in world.tasks:
            raise WorldFault(f"The conversation {name!r} is over.")
        return TeamId(name)

    def _limits(self) -> Limits:
        if self._bounds is not None or self._given is not None:
            return self._bounds or Limits()
        return self._provisions.loaded.settings.limits.limits

    def _kit(self, team: Team) -> Kit:
        found = self._kits.get(team.team_id)
        return refuse(team) if found is None else found


def _here() -> Path:
    """Where a program keeps its runs: the folder that is named for all, else one in the current folder."""
    return Path(os.environ.get(VARIABLE) or FOLDER)


def _place(workspace: str | Path | None, rules: Sequence[str]) -> Workplace:
    if workspace is None:
        return Workplace(rules)
    from greenroom.app.library.folder import FolderWorkplace

    return FolderWorkplace(workspace, rules)
