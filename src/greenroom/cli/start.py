"""What a run needs before it begins: agents, models, tools, limits, and trust in what the workspace brings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from rich.text import Text

from greenroom.app.conversation.start import ASSISTANT, Cast, cast_of
from greenroom.app.conversation.typed import Attached, message
from greenroom.app.runs.kit import coder
from greenroom.app.settings.schema import Caps
from greenroom.app.toolset.custom import meet_servers as meet
from greenroom.app.toolset.mcp import brought_servers
from greenroom.app.toolset.toolbox import Toolbox
from greenroom.app.trust import Brought, Standing, brought_by, own_ledger
from greenroom.app.workspace import current_folder
from greenroom.cli.context import Invocation, command
from greenroom.cli.options import Request, RunOptions
from greenroom.cli.render.output import harmless
from greenroom.cli.render.questions import confirm
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
class RunPlan:
    """Which agents take part, and what they may spend. `writers` can change files, by edits or by commands.
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
        return f"{named}{self.cast.models[0]} · {describe_caps(self.caps)}{tape}"

    def message(self, request: Request) -> str:
        """What is said, with what was piped in before it."""
        attached = (Attached(text=request.context),) if request.context else ()
        return message(request.text, attached, language=self.language)


async def plan_run(
    cli: Invocation, options: RunOptions, *, agent: str = "", model: str = "", tools: bool = True, job: bool = False
) -> RunPlan:
    """See that all models can be asked and are within the limits; none is asked yet. An empty name is the normal one:
    for a `job` a coder, else the assistant."""
    options.apply(cli.means)
    provisions = cli.means.provisions
    if agent or tools:
        ask_trust(cli, cli.means.root)
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
    return RunPlan(
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


async def meet_servers(cli: Invocation, cast: Cast) -> None:
    """See what new MCP servers have, if an agent is to use their tools."""
    specs = [spec for _, spec in cast.members]
    named = any(name.startswith(SERVERS) for spec in specs for name in spec.tools)
    if named or any("mcp" in spec.groups or spec.name == ASSISTANT.name for spec in specs):
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


def refuse_unpriced(model: Model, caps: Caps) -> None:
    """A cap on money means nothing for a model whose price is unknown."""
    if caps.cost is not None and model.price(1, 1) is None:
        raise WorldFault(
            f"No price is known for {model.name}, so at most ${caps.cost:g} cannot be promised. Nothing was sent. "
            f"Allow it with `--max-cost none`, or add its price in dollars per million tokens to your config.toml:\n\n"
            f'[prices."{model.name}"]\ninput = 1.0\noutput = 4.0\n'
        )


def describe_caps(caps: Caps) -> str:
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


# -------------------------------------------------------------------------------------------- what a workspace brings

STYLES: Final = {"agreed": "green", "changed": "yellow", "new": "yellow"}
QUESTION: Final = "[y] trust them  [n] go on without: "


class Item(NamedTuple):
    """Something that a workspace brings, and whether the person has agreed to it as it is now."""

    brought: Brought
    standing: Standing


def list_items(root: Path, more: Sequence[Brought] = ()) -> list[Item]:
    """All that a workspace brings, and `more` that it would have run. Notes count from the current folder up."""
    folder = current_folder()
    here = folder if folder.is_relative_to(root) else root
    every = brought_by(root, (*brought_servers(root), *more), folder=here)
    if not every:
        return []
    stands = own_ledger().standing(root)
    return [Item(thing, stands(thing)) for thing in every]


def render_items(items: Sequence[Item]) -> Iterator[Text]:
    """A line for each: never cut, for what is not read cannot be agreed to."""
    width = min(max((len(item.brought.name) for item in items), default=0), 24)
    for thing, standing in items:
        name, shown = (harmless(text.replace("\n", " ↵ ")) for text in (thing.name, thing.shown))
        text = Text(f"{standing:8}", style=STYLES[standing])
        yield text.append(f"{thing.kind:9} {name:{width}}  ", style="default").append(shown, style="dim")


def ask_trust(cli: Invocation, root: Path) -> None:
    """Before a run: ask about what is not agreed to. A no holds for this run; without a person it is only said."""
    found = [item for item in list_items(root) if item.standing != "agreed"]
    if not found:
        return
    if not cli.attended:
        for text in _left_out(found):
            cli.progress.note(f"! {text}: {command(cli, 'trust')}", style="yellow")
        return
    cli.progress.note("This workspace brings what could act in your name, and you have not agreed to it:")
    for line in render_items(found):
        cli.progress.note(line.plain)
    if confirm(QUESTION):
        own_ledger().agree(root, [item.brought for item in found])


def _left_out(found: Sequence[Item]) -> Iterator[str]:
    notes = [item.brought.name for item in found if item.brought.kind == "notes"]
    if count := len(found) - len(notes):
        what, verb, them = ("1 thing", "is", "it") if count == 1 else (f"{count} things", "are", "them")
        yield f"{what} that this workspace brings {verb} left out, since nobody has agreed to {them}"
    if notes:
        verb = "is" if len(notes) == 1 else "are"
        yield f"{' and '.join(notes)} {verb} taken as data and not as instructions, since nobody has agreed to that yet"
