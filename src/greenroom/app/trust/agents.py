"""The agents of a workspace without those that it brings and nobody has agreed to."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from greenroom.app.agents.finding import Agents, Found, Trouble
from greenroom.app.trust.ledger import Trusted
from greenroom.app.trust.listing import of_agent
from greenroom.core.base.records import evolve

NOT_AGREED: Final = "nobody has agreed to it yet: `greenroom trust` shows what this workspace brings, and asks."


def agreed(agents: Agents, root: Path, trusted: Trusted) -> Agents:
    """The same agents; one that may not be used is a trouble that says why. None of its name takes its place."""
    left = {name: one for name, one in agents.found.items() if not may_be_used(one, root, trusted)}
    if not left:
        return agents
    return evolve(
        agents,
        found={name: one for name, one in agents.found.items() if name not in left},
        troubles=(*agents.troubles, *(Trouble(name=name, text=refusal(one)) for name, one in left.items())),
    )


def may_be_used(one: Found, root: Path, trusted: Trusted) -> bool:
    """A person's own always, a project's when somebody has agreed to it."""
    return one.place.whose == "user" or trusted(of_agent(one, root))


def refusal(one: Found) -> str:
    """Why it is not used."""
    return f"The agent {one.spec.name!r} is from {one.path}, and {NOT_AGREED}"
