"""A stage for errands: a web of a few pages without a browser, a mind that follows a script, an album that counts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from greenroom.abilities.tools.browser_use import Bounds, BrowserUse, Question, Thought
from greenroom.core.base.amounts import Amounts
from greenroom.core.base.errors import ModelFault, WorldFault
from greenroom.core.ports.browser import Back, Move, Open, Sight, Tab
from greenroom.core.ports.executor import Bench
from greenroom.core.ports.model import ToolCall
from greenroom.core.state.step import Step, Terms
from greenroom.core.state.world import World

TOKENS = 10_000
COST = Amounts(tokens=100, money=7)


def call(name: str, **arguments: object) -> Thought:
    """One move."""
    return Thought(calls=(ToolCall(call_id="c", name=name, arguments=arguments),), spent=COST)


class StagedTab:
    """Pages by address; `moves` is what was done."""

    def __init__(self, pages: Mapping[str, str]) -> None:
        self._pages = pages
        self.moves: list[Move] = []
        self.here: list[str] = ["about:blank"]
        self.visited: list[str] = []
        self.refused: dict[str, str] = {}

    async def do(self, move: Move) -> None:
        self.moves.append(move)
        if isinstance(move, Open):
            if move.url not in self._pages:
                self.refused[move.url] = f"{move.url} is not reached from here."
                raise ModelFault("That did not work.")
            self.here.append(move.url)
            self.visited.append(move.url)
        if isinstance(move, Back) and len(self.here) > 1:
            self.here.pop()

    async def look(self) -> Sight:
        return Sight(url=self.here[-1], title="T", text=self._pages.get(self.here[-1], ""))

    async def shot(self) -> bytes:
        return b"jpeg"


class StagedBrowser:
    """Opens the one tab; `hosts` is what it was opened for, `open` how many are open."""

    def __init__(self, pages: Mapping[str, str] | None = None) -> None:
        self.tab = StagedTab(pages or {})
        self.hosts: list[tuple[str, ...]] = []
        self.open = 0

    def opened(self, hosts: Sequence[str]) -> AbstractAsyncContextManager[Tab]:
        return self._opened(hosts)

    @asynccontextmanager
    async def _opened(self, hosts: Sequence[str]) -> AsyncIterator[Tab]:
        self.hosts.append(tuple(hosts))
        self.open += 1
        try:
            yield self.tab
        finally:
            self.open -= 1


Answer = Thought | Exception | Callable[[Question], Thought]


class StagedMind:
    """Answers in this order; `asked` are the questions."""

    def __init__(self, *answers: Answer, calls: bool = True, missing: str = "") -> None:
        self._answers = list(answers)
        self._calls = calls
        self._missing = missing
        self.asked: list[Question] = []

    def terms(self, _: World, __: Step) -> Terms:
        if self._missing:
            raise WorldFault(self._missing)
        return Terms(effect="effectful", needs=Amounts(tokens=TOKENS, money=1_000))

    def calls(self, _: Bench) -> bool:
        if self._missing:
            raise WorldFault(self._missing)
        return self._calls

    async def think(self, _: Bench, question: Question) -> Thought:
        self.asked.append(question)
        answer = self._answers[0] if len(self._answers) == 1 else self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, Thought) else answer(question)


class StagedAlbum:
    """Keeps nothing but count."""

    def __init__(self) -> None:
        self.numbers: list[int] = []

    async def keep(self, errand: str, number: int, picture: bytes) -> str:
        assert picture == b"jpeg"
        self.numbers.append(number)
        return f"/album/{errand}"


def tool(browser: StagedBrowser, mind: StagedMind, bounds: Bounds | None = None) -> BrowserUse:
    """The tool on this stage."""
    return BrowserUse(lambda _: browser, mind, StagedAlbum(), bounds or Bounds())
