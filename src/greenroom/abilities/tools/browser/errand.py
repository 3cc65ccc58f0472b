"""An errand: the loop in which a model looks at a page and says what to do next, until it is done or at an end."""

from __future__ import annotations

from typing import Final, assert_never

from greenroom.abilities.tools.browser.mind import Mind, Question, Thought
from greenroom.abilities.tools.browser.wishes import Done, Extract, Wish, in_words, wished
from greenroom.core.base.amounts import NOTHING, Amounts
from greenroom.core.base.errors import ModelFault, WorldFault
from greenroom.core.base.fences import fenced
from greenroom.core.ports.browser import Album, Back, Click, Open, Scroll, Sight, Tab, Type
from greenroom.core.ports.executor import Bench, ToolPrinted
from greenroom.core.ports.packs import Pack

PACK: Final = Pack("greenroom.abilities.tools.browser.prompts")
STEPS: Final = 100
PART: Final = 16_000
"""Characters of a page that are shown at once."""

LINE: Final = 240
TRAIL: Final = 60
"""Lines of what was done that are told again: of a long errand the newest."""

KEPT: Final = 20_000
"""Characters of one finding."""

FAULTS: Final = 5
"""Answers in a row that are no use, before it is given up."""

TOLD: Final = 3
"""Hosts that were not reached, of which the model hears at once."""


class Failure(WorldFault):
    """The errand came to no good end."""


class Errand:
    """One errand; what it has found so far is known at any time."""

    def __init__(self, task: str, bench: Bench, mind: Mind, album: Album, steps: int = STEPS) -> None:
        self._task = task
        self._bench = bench
        self._mind = mind
        self._album = album
        self._steps = steps
        self._trail: list[str] = []
        self._part = 0
        self._refused: set[str] = set()
        self._misses = 0
        self.spent: Amounts = NOTHING
        self.extracted: list[str] = []
        self.visited: tuple[str, ...] = ()
        self.pictures = ""

    async def run(self, tab: Tab) -> str:
        """The result; `Failure` and other faults say why there is none."""
        for turn in range(1, self._steps + 1):
            sight = await tab.look()
            await self._picture(tab, turn)
            answer = await self._next(turn, sight)
            if answer is None:
                continue
            told, wish = answer
            if isinstance(wish, Done):
                return _result(wish)
            self._note(turn, told, await self._done(tab, wish))
            self.visited = tuple(tab.visited)
        raise Failure(f"It was not done after {self._steps} moves.")

    # ---------------------------------------------------------------------------------------------- asking

    async def _next(self, turn: int, sight: Sight) -> tuple[str, Wish] | None:
        """What the model wants now; None when its answer was no use, which it is told."""
        try:
            thought = await self._thought(turn, sight)
            wish = wished(thought.calls, thought.text)
        except ModelFault as fault:
            self._misses += 1
            if self._misses >= FAULTS:
                raise Failure(f"The model gave {FAULTS} answers in a row that are no use. {fault}") from None
            self._note(turn, "(no use)", str(fault))
            return None
        self._misses = 0
        return wish

    async def _thought(self, turn: int, sight: Sight) -> Thought:
        language, reserved = self._bench.agent.spec.language, self._bench.step.reserved
        actions = "" if self._mind.calls(self._bench) else in_words()
        question = Question(
            turn=turn,
            system=PACK.render(language, "errand", {"task": self._task, "actions": actions}),
            seen=PACK.render(language, "page", self._seen(turn, sight)),
            left=reserved.minus(self.spent),
        )
        try:
            thought = await self._mind.think(self._bench, question)
        except (ModelFault, WorldFault) as fault:
            self.spent = self.spent.plus(fault.spent or NOTHING)
            raise
        self.spent = self.spent.plus(thought.spent)
        return thought

    def _seen(self, turn: int, sight: Sight) -> dict[str, object]:
        parts = max(1, -(-len(sight.text) // PART))
        self._part = max(0, min(self._part, parts - 1))
        shown = sight.text[self._part * PART : (self._part + 1) * PART]
        return {
            "trail": "\n".join(self._trail[-TRAIL:]),
            "number": turn,
            "most": self._steps,
            "url": sight.url,
            "title": sight.title[:LINE],
            "part": self._part + 1,
            "parts": parts,
            "page": fenced(shown or "(nothing)"),
        }

    # ---------------------------------------------------------------------------------------------- doing

    async def _done(self, tab: Tab, wish: Wish) -> str:
        """Do it; what came of it, in a few words."""
        match wish:
            case Extract():
                self.extracted.append(wish.content[:KEPT])
                return "kept"
            case Scroll():
                self._part += 1 if wish.down else -1
            case Open() | Click() | Type() | Back():
                self._part = 0
            case Done():
                return ""
            case _:
                assert_never(wish)
        try:
            await tab.do(wish)
        except ModelFault as fault:
            return f"{fault}{self._not_reached(tab)}"
        return f"done{self._not_reached(tab)}"

    def _not_reached(self, tab: Tab) -> str:
        """Why hosts were not reached that were asked for since the last time."""
        new = {host: why for host, why in tab.refused.items() if host not in self._refused}
        self._refused |= new.keys()
        return "".join(f" {why}" for why in list(new.values())[:TOLD])

    def _note(self, turn: int, told: str, came: str) -> None:
        line = f"{turn}. {_short(told)}: {_short(came)}"
        self._trail.append(line)
        self._bench.show(ToolPrinted(text=f"{line}\n"))

    async def _picture(self, tab: Tab, turn: int) -> None:
        picture = await tab.shot()
        if picture:
            self.pictures = await self._album.keep(self._bench.key, turn, picture) or self.pictures


def _result(done: Done) -> str:
    if not done.success:
        raise Failure(done.result.strip() or "The model says that it cannot be done, and not why.")
    return done.result


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LINE else f"{line[:LINE]}…"
