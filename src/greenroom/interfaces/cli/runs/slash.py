"""What the commands of a chat do: `/clear`, `/model`, `/cost` and the others. What can be typed is in `app.talks`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, Literal

from greenroom.app.settings import values
from greenroom.app.settings.schema import MILLION, Caps
from greenroom.app.talks.chat import Chat
from greenroom.app.talks.founding import model_of, voiced
from greenroom.app.talks.typed.handlers import COMMANDS, Command
from greenroom.core.base.amounts import Limits
from greenroom.core.base.ids import TEAM_BUDGET
from greenroom.core.base.records import evolve, record
from greenroom.interfaces.cli.context import Invocation, command
from greenroom.interfaces.cli.display.progress import Progress
from greenroom.interfaces.cli.display.team import dollars, seconds
from greenroom.interfaces.cli.display.words import shorten
from greenroom.interfaces.cli.runs.start import Begun, bounds, refuse_unpriced

READERS: Final = {"cost": values.cost, "tokens": values.tokens, "time": values.time}
FIELDS: Final = {"cost": "money", "tokens": "tokens", "time": "millis"}
KEYS: Final = (
    ("Alt-Enter, or \\ at the end", "another line"),
    ('""" on a line of its own', "begins and ends several lines"),
    ("@path", "brings a file of this workspace along"),
    ("Ctrl-C", "stops the answer; twice leaves"),
    ("Ctrl-D", "leaves; it can be resumed"),
)
NOTHING_SAID: Final = "Nothing was said yet."
SHOWN: Final = 2_000
"""Characters of an answer in the history."""


@record
class Next:
    """What comes after a command: the prompt, a turn that was begun, something to say, or the end."""

    what: Literal["ask", "turn", "say", "leave"] = "ask"
    text: str = ""


class Slash:
    """Does them. Before something was said there is no team; what is chosen then counts for the one to be made."""

    def __init__(self, cli: Invocation, chat: Chat, progress: Progress, begun: Begun | None) -> None:
        self._cli = cli
        self._chat = chat
        self._progress = progress
        self.begun = begun
        self._doing: dict[str, Callable[[str], Awaitable[Next]]] = {
            "help": self._help,
            "clear": self._clear,
            "retry": self._retry,
            "continue": self._continue,
            "model": self._model,
            "cost": self._cost,
            "limit": self._limit,
            "history": self._history,
            "done": self._done,
            "exit": self._exit,
        }

    async def do(self, command: Command) -> Next:
        """Do it, and say what comes next."""
        return await self._doing[command.name](command.argument)

    def _say(self, text: str) -> Next:
        self._progress.note(text)
        return Next()

    async def _help(self, _: str) -> Next:
        rows = [(f"/{name} {_taken(about)}".strip(), _about(about)) for name, about in COMMANDS.items()]
        wide = max(len(left) for left, _ in (*rows, *KEYS))
        for left, right in (*rows, *KEYS):
            self._progress.note(f"  {left.ljust(wide)}  {right}")
        return Next()

    async def _exit(self, _: str) -> Next:
        return Next(what="leave")

    async def _done(self, summary: str) -> Next:
        if self._chat.team is not None:
            await self._chat.complete(summary)
            self._progress.note(f"The chat is over. It can be read: {command(self._cli, 'show', self._chat.its_team)}")
        return Next(what="leave")

    async def _clear(self, _: str) -> Next:
        if self._chat.team is not None:
            await self._chat.clear()
        return self._say("What was said is behind us: the next thing you say begins anew.")

    async def _retry(self, _: str) -> Next:
        said = await self._chat.exchanges() if self._chat.team is not None else []
        if not said:
            return self._say(NOTHING_SAID)
        if said[-1].answer:
            return Next(what="say", text=said[-1].asked)
        return await self._continue("")

    async def _continue(self, _: str) -> Next:
        if self._chat.team is None:
            return self._say(NOTHING_SAID)
        await self._chat.go_on()
        return Next(what="turn")

    # ---------------------------------------------------------------------------------------------------- looking

    async def _history(self, _: str) -> Next:
        said = await self._chat.exchanges() if self._chat.team is not None else []
        for one in said:
            self._progress.note(f"› {shorten(one.asked, SHOWN)}", style="bold")
            answer = one.answer or f"({one.error or 'not answered'})"
            self._progress.note(answer if len(answer) <= SHOWN else f"{answer[:SHOWN]}…")
        return Next() if said else self._say(NOTHING_SAID)

    async def _cost(self, _: str) -> Next:
        if self._chat.team is None:
            return self._say(NOTHING_SAID)
        budget = (await self._chat.world()).budgets[TEAM_BUDGET]
        spent, caps = budget.spent, _caps(budget.limits)
        told = f"{spent.tokens:,} tokens · {dollars(spent.money)} · {seconds(spent.millis)} of work"
        return self._say(f"{told} · {bounds(caps)}")

    # ------------------------------------------------------------------------------------------------- what counts

    async def _model(self, name: str) -> Next:
        if not name:
            return self._say(f"{await self._present()}. Another one: /model NAME; `greenroom models list` has them.")
        provisions = self._cli.means.provisions
        settled = provisions.settled(name)
        refuse_unpriced(provisions.named(settled), await self._allowed())
        if self._chat.team is None:
            self.begun = _with_model(self.begun, settled)
        else:
            await self._chat.choose(settled)
        return self._say(f"{settled} from now on.")

    async def _present(self) -> str:
        if self._chat.team is None:
            return self.begun.cast.models[0] if self.begun is not None else ""
        return model_of((await self._chat.world()).agents[self._chat.agent].spec)

    async def _allowed(self) -> Caps:
        if self._chat.team is None:
            return self.begun.caps if self.begun is not None else Caps()
        return _caps((await self._chat.world()).budgets[TEAM_BUDGET].limits)

    async def _limit(self, words: str) -> Next:
        name, _, value = words.partition(" ")
        if name not in READERS or not value.strip():
            told = f"{bounds(await self._allowed())}. " if not words else ""
            return self._say(f"{told}For instance: /limit cost 10, /limit tokens 200k, /limit time none.")
        try:
            new = evolve(await self._allowed(), **{name: READERS[name](value.strip())})
        except values.Unfit as unfit:
            return self._say(f"It must be {unfit}, not {value.strip()!r}.")
        if self._chat.team is None:
            self.begun = evolve(self.begun, caps=new) if self.begun is not None else None
        else:
            old = (await self._chat.world()).budgets[TEAM_BUDGET].limits
            field = FIELDS[name]
            await self._chat.allow(evolve(old, **{field: getattr(new.limits, field)}))
        return self._say(f"{bounds(new)} from now on.")


def _with_model(begun: Begun | None, model: str) -> Begun | None:
    """The same cast, whose first one asks another model."""
    if begun is None:
        return None
    (name, spec), *rest = begun.cast.members
    return evolve(begun, cast=evolve(begun.cast, members=((name, voiced(spec, model)), *rest)))


def _caps(limits: Limits) -> Caps:
    return Caps(
        cost=None if limits.money is None else limits.money / MILLION,
        tokens=limits.tokens,
        time=None if limits.millis is None else limits.millis / 1000,
    )


def _taken(about: str) -> str:
    return about.partition("  ")[0] if "  " in about else ""


def _about(about: str) -> str:
    return about.partition("  ")[2] or about
