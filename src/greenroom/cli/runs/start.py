"""Starting a run: which agent, with which model, under which limits. All that can be refused is refused here."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from greenroom.app.conversation.start import ASSISTANT, Cast, cast_of
from greenroom.app.conversation.typed import Attached, message
from greenroom.app.runs.kit import coder
from greenroom.app.settings.schema import Caps
from greenroom.app.toolset.toolbox import Toolbox
from greenroom.cli.context import Invocation
from greenroom.cli.options import RunOptions
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.ids import TEAM_BUDGET
from greenroom.core.base.records import evolve, record
from greenroom.core.ports.model import Model
from greenroom.core.ports.tool import BUILT_IN
from greenroom.core.rules.intents import SetLimits
from greenroom.core.state.step import SIDE_EFFECTS
from greenroom.core.state.world import World

if TYPE_CHECKING:
    from greenroom.app.agents.finding import Agents

SERVERS: Final = "mcp__"  # how the names of tools begin that MCP servers have
WRITING: Final = frozenset({"edit", "command"})
"""The groups of tools that change files of a workspace: an agent that has one of them can write."""

FEW: Final = 5  # tools that are named in a sentence


@record
class Begun:
    """Who takes part, and what they may spend. `writers` can change files: by a tool that edits, or by commands.
    `notes` say which agents cannot be called, and why; `outside` which tools act outside the copy."""

    cast: Cast
    caps: Caps
    language: str
    replayed: bool
    writers: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    outside: str = ""

    @property
    def line(self) -> str:
        named = "" if self.cast.first == ASSISTANT.name else f"{self.cast.first} · "
        tape = " · from a recording" if self.replayed else ""
        return f"{named}{self.cast.models[0]} · {bounds(self.caps)}{tape}"


async def begin(
    cli: Invocation, options: RunOptions, *, agent: str = "", model: str = "", tools: bool = True, job: bool = False
) -> Begun:
    """See that all models can be asked and are within the limits; none is asked yet. An empty name is the normal one:
    for a `job` a coder, else the assistant."""
    options.apply(cli.means)
    provisions = cli.means.provisions
    if agent or tools:
        see_what_is_brought(cli, cli.means.root)
    agents = cli.means.agents() if agent else None
    usual = coder(cli.means.language) if job else ASSISTANT
    spec = agents.get(agent).spec if agents is not None else usual
    await provisions.look_around()
    settings = provisions.loaded.settings
    others = agents.specs if agents is not None else {}
    cast = cast_of(spec, others, provisions.settled, model=model, tools=tools, language=settings.language)
    box = await _toolbox(cli, cast) if tools else None
    if box is not None:
        defaults = {ASSISTANT.name: box.usual}  # the built-in assistant names no tools
        members = tuple((name, box.equipped(spec, default=defaults.get(name, ()))) for name, spec in cast.members)
        cast = evolve(cast, members=members, workspace=str(cli.means.root))
    writing = {tool.name for tool in box or () if tool.card.group in WRITING}
    for name in cast.models:
        refuse_unpriced(provisions.named(name), settings.limits)
    return Begun(
        cast=cast,
        caps=settings.limits,
        language=settings.language,
        replayed=options.replay is not None,
        writers=tuple(name for name, spec in cast.members if writing.intersection(spec.tools)),
        outside=_outside(cast, box) if box is not None else "",
        notes=(*(_absent(name, agents) for name in cast.missing), *(box.notes if box is not None else ())),
    )


def _absent(name: str, agents: Agents | None) -> str:
    """Why an agent cannot be called: there is none of that name, or something is wrong with it."""
    troubles = agents.troubles if agents is not None else ()
    why = next((trouble.text for trouble in troubles if trouble.name == name), "")
    return f"{name!r} cannot be called. {why}" if why else f"Nobody is called {name!r}, so it cannot be called."


def see_what_is_brought(cli: Invocation, root: Path) -> None:
    """Ask about what the workspace brings and the person has not agreed to; without a person, say what is left out."""
    from greenroom.cli.runs.trust import settle

    settle(cli, root)


async def meet_servers(cli: Invocation, cast: Cast) -> None:
    """See what new MCP servers have, if an agent is to use their tools."""
    specs = [spec for _, spec in cast.members]
    named = any(name.startswith(SERVERS) for spec in specs for name in spec.tools)
    if named or any("mcp" in spec.groups or spec.name == ASSISTANT.name for spec in specs):
        from greenroom.app.toolset.custom import meet_servers as meet

        for trouble in await meet(cli.means.root):
            cli.progress.note(trouble, style="yellow")


async def _toolbox(cli: Invocation, cast: Cast) -> Toolbox | None:
    """The tools of the workspace in which this was typed; None when no agent wants any."""
    if not any(spec.tools or spec.groups or spec.name == ASSISTANT.name for _, spec in cast.members):
        return None

    await meet_servers(cli, cast)
    return cli.means.toolbox()


def _outside(cast: Cast, tools: Toolbox) -> str:
    """Tools of servers and of people, which do not know of a copy and act where they always do."""
    wanted = {name for _, spec in cast.members for name in spec.tools}
    foreign = (tool for tool in tools if tool.card.source != BUILT_IN and tool.card.effect in SIDE_EFFECTS)
    names = [tool.name for tool in foreign if tool.name in wanted]
    more = f" and {len(names) - FEW} more" if len(names) > FEW else ""
    return f"Not in the copy, but where they always act: {', '.join(names[:FEW])}{more}." if names else ""


def with_context(text: str, context: str, language: str) -> str:
    """What is said, with what was piped in before it."""
    return message(text, (Attached(text=context),) if context else (), language=language)


def refuse_unpriced(model: Model, caps: Caps) -> None:
    """A cap on money means nothing for a model whose price is unknown."""
    if caps.cost is not None and model.price(1, 1) is None:
        raise WorldFault(
            f"No price is known for {model.name}, so at most ${caps.cost:g} cannot be promised. Nothing was sent. "
            f"Allow it with `--max-cost none`, or add its price in dollars per million tokens to your config.toml:\n\n"
            f'[prices."{model.name}"]\ninput = 1.0\noutput = 4.0\n'
        )


def bounds(caps: Caps) -> str:
    """What it may spend, in words."""
    each = [
        f"${caps.cost:g}" if caps.cost is not None else "",
        f"{caps.tokens:,} tokens" if caps.tokens is not None else "",
        f"{caps.time:g} s of work" if caps.time is not None else "",
    ]
    told = ", ".join(filter(None, each))
    return f"at most {told}" if told else "no limit"


def new_limits(cli: Invocation, world: World, options: RunOptions) -> list[SetLimits]:
    """The team's limits with what was typed anew; none if nothing was."""
    typed = {"money": options.cost, "tokens": options.tokens, "millis": options.time}
    if all(value is None for value in typed.values()):
        return []
    options.limit(cli.means)
    new, old = cli.means.provisions.loaded.settings.limits.limits, world.budgets[TEAM_BUDGET].limits
    changes = {name: getattr(new, name) for name, value in typed.items() if value is not None}
    return [SetLimits(budget_id=TEAM_BUDGET, limits=evolve(old, **changes))]
