"""Beginning a talk: whom to ask, with which model, under which limits. All that can be refused is refused here."""

from __future__ import annotations

from greenroom.app.settings.schema import Caps
from greenroom.app.talks.founding import ASSISTANT, Cast, cast_of
from greenroom.app.talks.typed.data import Attached, message
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.ids import TEAM_BUDGET
from greenroom.core.base.records import evolve, record
from greenroom.core.ports.model import Model
from greenroom.core.rules.intents import SetLimits
from greenroom.core.state.world import World
from greenroom.interfaces.cli.asked import orders
from greenroom.interfaces.cli.runs.session import Door


@record
class Wish:
    """Whom a person wants to talk to; empty names mean what is normal."""

    agent: str = ""
    model: str = ""
    tools: bool = True
    caps: orders.Caps
    tape: orders.Tape


@record
class Begun:
    """Who takes part, and what they may spend."""

    cast: Cast
    caps: Caps
    language: str
    replayed: bool

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
    agents = door.means.surroundings.agents() if wish.agent else None
    spec = agents.get(wish.agent).spec if agents is not None else ASSISTANT
    others = agents.specs if agents is not None else {}
    await provisions.look_around()
    settings = provisions.loaded.settings
    cast = cast_of(spec, others, provisions.settled, model=wish.model, tools=wish.tools, language=settings.language)
    if wish.tools:
        cast = equipped(door, cast)
    for name in cast.models:
        refuse_unpriced(provisions.named(name), settings.limits)
    return Begun(cast=cast, caps=settings.limits, language=settings.language, replayed=wish.tape.replay is not None)


def equipped(door: Door, cast: Cast) -> Cast:
    """The cast with its tools, in the workspace in which this was typed; as it is when nobody names any."""
    if not any(spec.tools or spec.groups for _, spec in cast.members):
        return cast
    root = door.means.surroundings.root
    tools = door.means.toolbox(root)
    members = tuple((name, tools.equipped(spec)) for name, spec in cast.members)
    return evolve(cast, members=members, workspace=str(root))


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
