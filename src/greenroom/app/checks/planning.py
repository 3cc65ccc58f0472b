"""Which checks count in a run, and which are run at all: what a person confirmed, and behind walls what was found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from greenroom.app.checks.brought import brought
from greenroom.app.checks.choices import Choice
from greenroom.app.settings.layers import Loaded
from greenroom.app.settings.schema import CheckSettings
from greenroom.app.trust.ledger import Trusted
from greenroom.core.base.records import evolve, record
from greenroom.core.ports.checks import Check

TYPED: Final = "You said so."
EDITED: Final = "You changed it."


@record
class Plan:
    """`run` are the checks of this run, `confirmed` the names of those that a person wanted; `open` are those that
    nobody was asked about, in the form that they have now. `left` says what is not run, and why; `declined` are the
    digests of those that a person did not want. `found` are the project's own, of which all this was chosen."""

    run: tuple[Check, ...] = ()
    confirmed: frozenset[str] = frozenset()
    open: tuple[Check, ...] = ()
    left: tuple[str, ...] = ()
    declined: frozenset[str] = frozenset()
    found: tuple[Check, ...] = ()


def planned(found: Sequence[Check], choice: Choice | None, trusted: Trusted, *, walls: bool) -> Plan:
    """What is run when nobody can be asked any more. `found` are the project's own, `walls` say that they hold.

    Whoever can ask shows `open`, saves the answer and plans again.
    """
    sure = [one for one in _wanted(found, choice) if one.own or trusted(brought(one))]
    declined = frozenset(choice.declined if choice is not None else ())
    known = {one.digest for one in sure} | declined
    doubtful = tuple(one for one in found if one.digest not in known)
    left = tuple(_left(one, choice) for one in doubtful) if not walls else ()
    gone = tuple(_gone(found, choice))
    run = (*sure, *doubtful) if walls else tuple(sure)
    confirmed = frozenset(one.name for one in sure)
    own = tuple(one for one in found if not one.own)
    return Plan(run=run, confirmed=confirmed, open=doubtful, left=(*left, *gone), declined=declined, found=own)


def _wanted(found: Sequence[Check], choice: Choice | None) -> Iterator[Check]:
    """What was chosen, as it is in the project now; without a choice, all."""
    if choice is None:
        yield from found
        return
    now = {one.digest: one for one in found}
    yield from (now.get(one.digest, one) for one in choice.checks if one.own or one.digest in now)


def _left(check: Check, choice: Choice | None) -> str:
    names = {one.name for one in choice.checks} if choice is not None else set()
    why = "what it runs has changed since you confirmed it" if check.name in names else "nobody has confirmed it"
    return (
        f"{check.name!r} was not run: {why}, and there are no walls around commands here. `greenroom trust` shows it."
    )


def _gone(found: Sequence[Check], choice: Choice | None) -> Iterator[str]:
    names = {one.name for one in found}
    for one in choice.checks if choice is not None else ():
        if not one.own and one.name not in names:
            yield f"{one.name!r}, which you confirmed, was not run: the project does not define it any more."


def own_check(line: str, found: Sequence[Check]) -> Check:
    """A line that somebody typed. Where the project has the same one, it is that: then its changes are asked about."""
    typed = " ".join(line.split())
    same = next((one for one in found if one.line == typed), None)
    return same or Check(name=typed[:60], line=line.strip(), kind="test", why=TYPED, own=True)


def edited(check: Check, line: str) -> Check:
    """A check with another line, which is the person's from now on."""
    return evolve(check, line=line.strip(), why=EDITED, means="", own=True)


def to_change(check: Check) -> str:
    """How a person changes a check of theirs, as the end of a sentence about it; empty for one of the project."""
    if not check.own:
        return ""
    if check.why in (TYPED, EDITED):
        return (
            " You typed that line: `greenroom trust --revoke` takes it back, and the next run at a terminal asks anew."
        )
    return f" The line is yours: {check.why} Change it there."


def proposed(settings: Mapping[str, CheckSettings], loaded: Loaded) -> tuple[Check, ...]:
    """What `[checks]` in a file of settings wants. In the person's own file it is theirs, elsewhere a proposal."""
    return tuple(_proposed(name, one, loaded) for name, one in settings.items())


def _proposed(name: str, one: CheckSettings, loaded: Loaded) -> Check:
    origin = loaded.origin(f"checks.{name}.run")
    layers = {loaded.origin(f"checks.{name}.{key}").layer for key in ("run", "kind", "folder", "seconds")}
    why = f"{origin.source or 'a file of settings'} says so in [checks.{name}]."
    return Check(
        name=name,
        line=one.run,
        kind=one.kind,
        why=why,
        folder=one.folder,
        seconds=round(one.seconds),
        own=layers <= {"user", "default"},
    )


def together(proposals: Sequence[Check], found: Sequence[Check]) -> tuple[Check, ...]:
    """Both, none twice: a line that the project proposes itself goes by the name that it gives it."""
    said = {(one.line, one.folder): one.means for one in found}
    first = [evolve(one, means=said.get((one.line, one.folder), one.means)) for one in proposals]
    taken = {(one.line, one.folder) for one in first}
    names = {one.name for one in first}
    rest = [one for one in found if (one.line, one.folder) not in taken and one.name not in names]
    return (*first, *rest)
