"""A run that begins as another one was: with the same base, and at one of its commits.

What it begins with is a ref of its own, written last: without it nothing was adopted, and whoever asks again does it.
"""

from __future__ import annotations

from greenroom.adapters.git.house import House
from greenroom.adapters.git.locks import alone
from greenroom.adapters.git.names import base_ref, thread_ref
from greenroom.adapters.git.refs import move, value_of
from greenroom.core.ports.workspace import WorkspaceFault


async def adopt(house: House, run: str, thread: str, origin: str, tip: str) -> None:
    """Give a run the base of its origin, and a thread of it this newest commit."""
    async with alone(house.folder / "open.lock"):
        if await value_of(house, base_ref(run)):
            return
        base = await value_of(house, base_ref(origin))
        if not base:
            raise _lost(house, origin, "what it began with")
        if tip and not await _comes_after(house, base, tip):
            raise _lost(house, origin, f"its commit {tip[:12]}")
        if tip and tip != base:
            ref = thread_ref(run, thread)
            await move(house, ref, tip, await value_of(house, ref))
        await move(house, base_ref(run), base, "")


async def _comes_after(house: House, base: str, tip: str) -> bool:
    """Whether the repository has both, and one leads to the other."""
    return (await house.plain.tried("merge-base", "--is-ancestor", base, tip)).code == 0


def _lost(house: House, origin: str, what: str) -> WorkspaceFault:
    root = str(house.repository.root)
    why = f"The files of {origin!r} as they were then cannot be had again: {root!r} does not keep {what} any more."
    return WorkspaceFault("name", f"{why} Begin something new.")
