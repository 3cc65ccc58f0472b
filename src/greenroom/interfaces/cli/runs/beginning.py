"""Beginning a talk: whom to ask, with which model, under which limits. All that can be refused is refused here."""

from __future__ import annotations

import typing
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from greenroom.app.conversation.start import ASSISTANT, Cast, cast_of
from greenroom.app.conversation.typed import Attached, message
from greenroom.app.settings.schema import Caps
from greenroom.app.toolset.toolbox import Toolbox
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.ids import TEAM_BUDGET
from greenroom.core.base.records import evolve, record
from greenroom.core.ports.model import Model
from greenroom.core.ports.tool import BUILT_IN
from greenroom.core.rules.intents import SetLimits
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import SIDE_EFFECTS
from greenroom.core.state.world import World
from greenroom.interfaces.cli.asked import orders
from greenroom.interfaces.cli.loading import load
from greenroom.interfaces.cli.runs.session import Door

if typing.TYPE_CHECKING:
    from greenroom.app.agents import Agents

SERVERS: Final = "mcp__"
"""How the names of tools begin that MCP servers have."""

WRITING: Final = frozenset({"edit", "command"})
"""The groups of tools that change files of a workspace: who has one of them can write."""

FEW: Final = 5
"""Tools that are named in a sentence."""


@record
class Wish:
    """Whom a person wants to talk to; empty names mean what is normal: for what may become a `job`, a coder."""

    agent: str = ""
    model: str = ""
    tools: bool = True
    job: bool = False
    caps: orders.Caps
    tape: orders.Tape


@record
class Begun:
    """Who takes part, and what they may spend. `writers` are those who can change files: by a tool that edits, or by
    commands. `notes` say whom it cannot call, and why; `outside` what acts in no copy."""

    cast: Cast
    caps: Caps
    language: str
    replayed: bool
    writers: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    outside: str = ""

    @property
    def line(self) -> str:
        """The same in words."""
        named = "" if self.cast.first == ASSISTANT.name else f"{self.cast.first} · "
        tape = " · from a recording" if self.replayed else ""
        return f"{named}{self.cast.models[0]} · {bounds(self.caps)}{tape}"


async def begun(door: Door, wish: Wish) -> Begun:
    """See that all models can be asked and are within the limits; nobody is asked yet."""
    door.means.cap(wish.caps)
    door.means.tape(wish.tape)
    provisions = door.means.provisions
    if wish.agent or wish.tools:
        see_what_is_brought(door, door.means.root)
    agents = door.means.surroundings.agents() if wish.agent else None
    spec = agents.get(wish.agent).spec if agents is not None else _usual(door, job=wish.job)
    others = agents.specs if agents is not None else {}
    await provisions.look_around()
    settings = provisions.loaded.settings
    cast = cast_of(spec, others, provisions.settled, model=wish.model, tools=wish.tools, language=settings.language)
    tools = await toolbox(door, cast) if wish.tools else None
    if tools is not None:
        cast = equipped(cast, tools, door.means.root)
    for name in cast.models:
        refuse_unpriced(provisions.named(name), settings.limits)
    return Begun(
        cast=cast,
        caps=settings.limits,
        language=settings.language,
        replayed=wish.tape.replay is not None,
        writers=writers(cast, tools) if tools is not None else (),
        outside=outside(cast, tools) if tools is not None else "",
        notes=(*(_absent(name, agents) for name in cast.missing), *(tools.notes if tools is not None else ())),
    )


def _usual(door: Door, *, job: bool) -> AgentSpec:
    """Who works when nobody is named."""
    if not job:
        return ASSISTANT
    make = typing.cast("Callable[[str], AgentSpec]", load("runs.jobs", "coder"))
    return make(door.means.provisions.loaded.settings.language)


def _absent(name: str, agents: Agents | None) -> str:
    """Why somebody cannot be called: there is nobody of that name, or something is wrong with them."""
    troubles = agents.troubles if agents is not None else ()
    why = next((one.text for one in troubles if one.name == name), "")
    return f"{name!r} cannot be called. {why}" if why else f"Nobody is called {name!r}, so it cannot be called."


def see_what_is_brought(door: Door, root: Path) -> None:
    """Ask about what the workspace brings and nobody has agreed to; without a person it is said that it is left out."""
    settle = typing.cast("Callable[[Door, Path], None]", load("runs.trusting", "settle"))
    settle(door, root)


async def meet_servers(door: Door, cast: Cast) -> None:
    """See what new MCP servers have, if somebody is to use their tools."""
    if any(_wants_servers(spec) for _, spec in cast.members):
        meet = typing.cast("Callable[[Path], Awaitable[tuple[str, ...]]]", load("runs.hands", "meet_servers"))
        for said in await meet(door.means.root):
            door.progress.note(said, style="yellow")


def _wants_servers(spec: AgentSpec) -> bool:
    named = any(name.startswith(SERVERS) for name in spec.tools)
    return named or "mcp" in spec.groups or spec.name == ASSISTANT.name


async def toolbox(door: Door, cast: Cast) -> Toolbox | None:
    """The tools of the workspace in which this was typed; None when nobody wants any."""
    if not any(spec.tools or spec.groups or spec.name == ASSISTANT.name for _, spec in cast.members):
        return None
    await meet_servers(door, cast)
    return door.means.toolbox(door.means.root)


def equipped(cast: Cast, tools: Toolbox, root: Path) -> Cast:
    """The cast with its tools. The house's own assistant names none, and has the usual ones."""
    usual = {ASSISTANT.name: tools.usual}
    members = tuple((name, tools.equipped(spec, default=usual.get(name, ()))) for name, spec in cast.members)
    return evolve(cast, members=members, workspace=str(root))


def writers(cast: Cast, tools: Toolbox) -> tuple[str, ...]:
    """Those who can change files of the workspace."""
    names = {tool.name for tool in tools if tool.card.group in WRITING}
    return tuple(name for name, spec in cast.members if names.intersection(spec.tools))


def outside(cast: Cast, tools: Toolbox) -> str:
    """What does not know of a copy: tools of servers and of people, which act where they always do."""
    wanted = {name for _, spec in cast.members for name in spec.tools}
    foreign = (tool for tool in tools if tool.card.source != BUILT_IN and tool.card.effect in SIDE_EFFECTS)
    names = [tool.name for tool in foreign if tool.name in wanted]
    more = f" and {len(names) - FEW} more" if len(names) > FEW else ""
    return f"Not in the copy, but where they always act: {', '.join(names[:FEW])}{more}." if names else ""


def with_context(text: str, context: str, language: str) -> str:
    """What is said, with what was piped in before it."""
    return message(text, (Attached(text=context),) if context else (), language=language)


def refuse_unpriced(model: Model, caps: Caps) -> None:
    """A cap on money means nothing for a model that nobody knows the price of."""
    if caps.cost is not None and model.price(1, 1) is None:
        raise WorldFault(
            f"No price is known for {model.name}, so at most ${caps.cost:g} cannot be promised. Nothing was sent. "
            f"Allow it with `--max-cost none`, or add its price in dollars per million tokens to your config.toml:\n\n"
            f'[prices."{model.name}"]\ninput = 1.0\noutput = 4.0\n'
        )


def bounds(caps: Caps) -> str:
    """What it may spend, in words."""
    said = [
        f"${caps.cost:g}" if caps.cost is not None else "",
        f"{caps.tokens:,} tokens" if caps.tokens is not None else "",
        f"{caps.time:g} s of work" if caps.time is not None else "",
    ]
    told = ", ".join(one for one in said if one)
    return f"at most {told}" if told else "no limit"


def new_limits(door: Door, world: World, caps: orders.Caps) -> list[SetLimits]:
    """The team's limits with what was said anew; none if nothing was."""
    said = {"money": caps.cost, "tokens": caps.tokens, "millis": caps.time}
    if all(one is None for one in said.values()):
        return []
    door.means.cap(caps)
    new, old = door.means.provisions.loaded.settings.limits.limits, world.budgets[TEAM_BUDGET].limits
    changes = {name: getattr(new, name) for name, one in said.items() if one is not None}
    return [SetLimits(budget_id=TEAM_BUDGET, limits=evolve(old, **changes))]
