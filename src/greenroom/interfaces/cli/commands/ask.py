"""`greenroom ask`: one question to one model, kept in the log like every other work."""

from __future__ import annotations

from dataclasses import replace

from greenroom.app.asking import ask as found
from greenroom.app.settings.schema import Caps
from greenroom.core.base.errors import WorldFault
from greenroom.core.ports.model import Model
from greenroom.interfaces.cli.asked.orders import Ask
from greenroom.interfaces.cli.display.talk import Talk
from greenroom.interfaces.cli.exits import Exit
from greenroom.interfaces.cli.runs.ending import close
from greenroom.interfaces.cli.runs.running import follow
from greenroom.interfaces.cli.runs.session import Door


async def ask(door: Door, order: Ask) -> Exit:
    """See that the model can be asked, then make the team and follow it to its end."""
    door.means.cap(order.caps)
    door.means.tape(order.tape)
    provisions = door.means.provisions
    await provisions.look_around()
    name, caps = provisions.settled(order.model), provisions.loaded.settings.limits
    refuse_unpriced(provisions.named(name), caps)
    talk = Talk(door.setup, door.out)
    team = await found(door.runtime, order.question, model=name, limits=caps.limits)
    door.out.begin(team=team, command="ask", model=name, home=str(door.home))
    talk.note(f"{name} · {bounds(caps)}" + (" · from a recording" if order.tape.replay else ""), style="dim")
    ending = await follow(replace(door, progress=talk), team, new=True)
    return close(replace(door, progress=talk), team, ending, name="last", spoken=talk.spoken)


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
