"""The checks of one workspace, run: on the base first, then again and again, each time beside the base."""

from __future__ import annotations

import re
import shlex
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from greenroom.abilities.checks.comparing import compared, entry
from greenroom.abilities.checks.excerpts import excerpt
from greenroom.abilities.checks.finding.found import meant
from greenroom.abilities.checks.finding.python import is_pytest
from greenroom.abilities.checks.looking import Look
from greenroom.app.checks.running import run_once, unable
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.records import encode, evolve
from greenroom.core.ports.checks import AS_A_WHOLE, Check, Checked, Compared, Ran, Report, Witness
from greenroom.core.ports.commands import Commands

Tree: TypeAlias = Callable[[], Awaitable[str]]
"""The name of the tree as it is now: the same for the same files."""

AGAIN: Final = 2
"""How often tests that newly fail are run again by themselves: who fails there too need not be run with the others."""

SELECTED: Final = 50
"""Tests that are named on a command line at most."""

LONG: Final = 300.0
"""Seconds: a check that takes longer is not run again."""

NO_REPORT: Final = (
    "There is no report of its tests, which pytest makes: something else ran in its place, or it was ended before it "
    "was over."
)
PLAIN: Final = re.compile(r"[\w./=\- ]*\bpytest\b[\w./=\- ]*")
"""A line that is only pytest and its arguments: ids can be added to it."""


class ProjectChecks:
    """Runs `checks` by `commands`; `tree` names what they are run on, `look` sees what they mean there now.

    `base` is what they said on the base, by name. `left` says which were not to be run, and why. A `fresh` tree is one
    in which nobody has worked; `unable` says why nothing can be run there.
    """

    def __init__(
        self,
        checks: Sequence[Check],
        commands: Commands,
        tree: Tree,
        *,
        look: Look | None = None,
        base: Mapping[str, Ran] | None = None,
        left: Sequence[str] = (),
        fresh: bool = False,
        unable: str = "",
    ) -> None:
        self._checks = tuple(checks)
        self._commands = commands
        self._tree = tree
        self._look = look
        self._base = dict(base or {})
        self._left = tuple(left)
        self._fresh = fresh
        self._unable = unable

    @property
    def checks(self) -> Sequence[Check]:
        """Those that it runs, the most useful first."""
        return self._checks

    @property
    def commands(self) -> Commands:
        """What runs them, in the place where they are run."""
        return self._commands

    @property
    def look(self) -> Look | None:
        """Who sees that place."""
        return self._look

    def instead(self, checks: Sequence[Check]) -> ProjectChecks:
        """Other checks in the same place, which were not there on the base: nothing had failed, so all that fails is
        new. What is pytest has to make its report."""
        nothing = {
            one.name: Ran(
                check=one.name, digest=one.digest, kind=one.kind, outcome="passed", exit=0, exact=is_pytest(one)
            )
            for one in checks
        }
        return ProjectChecks(
            checks, self._commands, self._tree, look=self._look, base=nothing, fresh=self._fresh, unable=self._unable
        )

    def elsewhere(self, commands: Commands, tree: Tree, look: Look, *, unable: str = "") -> ProjectChecks:
        """The same checks with the same base, on a fresh copy."""
        return ProjectChecks(
            self._checks, commands, tree, look=look, base=self._base, left=self._left, fresh=True, unable=unable
        )

    async def baseline(self, witness: Witness) -> Report:
        """Run all of them: what fails now is old from now on."""
        report = await self._report(self._checks, witness, base=True)
        return evolve(report, base=True)

    async def run(self, only: Sequence[str], witness: Witness) -> Report:
        """Run those with these names, or all, and say what is new since the base."""
        return await self._report([one for one in self._checks if not only or one.name in only], witness, base=False)

    async def _report(self, checks: Sequence[Check], witness: Witness, *, base: bool) -> Report:
        before = await self._tree()
        entries = []
        for check in checks:
            entries.append(await self._checked(self._as_it_is(check), before, witness, base=base))
            before = await self._tree()
        tree = entries[0].tree if entries else before
        return Report(tree=tree, checks=tuple(entries), left=self._left, fresh=self._fresh)

    async def _checked(self, check: Check, tree: str, witness: Witness, *, base: bool) -> Checked:
        old = None if base else self._base.get(check.name)
        ran, text = await self._ran(check, old, witness)
        flaky = await self._flaky(check, ran, old, witness) if not base else frozenset[str]()
        output = await witness.keep(text.encode(errors="replace"))
        ran = evolve(ran, tree=tree, steady=await self._tree() == tree, output=output)
        against: Compared | None = None
        if base:
            self._base[check.name] = ran
        elif old is not None:
            against = compared(old, ran, flaky)
        elif flaky:
            against = compared(evolve(ran, tests={}, outcome="passed", exit=0), ran, flaky)
        failing = sorted(against.new if against is not None else ran.failing)
        shown = excerpt(text, failing) if failing or ran.outcome == "could_not_run" else ""
        return entry(ran, check.kind, against, tests=await witness.keep(encode(ran)), excerpt=shown)

    async def _ran(self, check: Check, old: Ran | None, witness: Witness) -> tuple[Ran, str]:
        """What came of it. Whose report is missing has not run as it did, whatever its exit code says: a program that
        takes the runner's place, or one that ends it early, can say that all is well."""
        if self._unable:
            return unable(check, self._unable), ""
        ran, text = await run_once(check, self._commands, witness)
        if old is not None and old.exact and not ran.exact and ran.outcome != "could_not_run":
            ran = evolve(ran, outcome="could_not_run", reason=NO_REPORT)
        return ran, text

    async def _flaky(self, check: Check, ran: Ran, old: Ran | None, witness: Witness) -> frozenset[str]:
        """Those of what newly fails that pass when the whole check is run again on the same tree. That one passes by
        itself says nothing: it may fail beside the others, every time, for what the work has done."""
        known = old.failing if old is not None else frozenset[str]()
        doubtful = frozenset(one for one in ran.failing - known if not one.endswith(".py"))  # no file fails by chance
        if check.kind != "test" or not doubtful or ran.outcome != "failed":
            return frozenset()
        if ran.seconds > LONG:
            return frozenset()
        line = _selecting(check, doubtful)
        hopeful = await self._pass_alone(check, line, doubtful, witness) if line else doubtful
        if not hopeful:
            return frozenset()
        again, _text = await run_once(check, self._commands, witness)
        return frozenset(name for name in hopeful if _passes(again, name))

    async def _pass_alone(self, check: Check, line: str, doubtful: frozenset[str], witness: Witness) -> frozenset[str]:
        """Those that pass when nothing else runs: a small run that mostly saves a large one."""
        found: set[str] = set()
        for _ in range(AGAIN):
            again, _text = await run_once(check, self._commands, witness, line)
            found |= {name for name in doubtful if _passes(again, name)}
            if found == doubtful:
                break
        return frozenset(found)

    def _as_it_is(self, check: Check) -> Check:
        """The check with what its line stands for in this tree: when the work changes that, the digest tells."""
        return evolve(check, means=meant(check, self._look)) if self._look is not None else check


def _selecting(check: Check, names: frozenset[str]) -> str:
    """The line that runs these tests only; empty where there is none."""
    chosen = sorted(names)
    if len(chosen) > SELECTED or not PLAIN.fullmatch(check.line) or not all(".py::" in one for one in chosen):
        return ""
    return f"{check.line} {shlex.join(chosen)}"


def _passes(again: Ran, name: str) -> bool:
    """Whether it passed this time; a runner that names only what fails ends well, and does not name it."""
    if name == AS_A_WHOLE or name not in again.tests:
        return again.outcome == "passed"
    return again.tests[name] == "passed"


async def base_of(report: Report, fetch: Callable[[str], Awaitable[bytes]]) -> dict[str, Ran]:
    """What a report of the base has kept, by check: for whoever goes on after a restart."""
    found_again: dict[str, Ran] = {}
    for one in report.checks:
        try:
            found_again[one.check] = msgspec.json.decode(await fetch(one.tests), type=Ran)
        except msgspec.MsgspecError as error:
            raise WorldFault(f"What {one.check!r} said on the base cannot be read again ({error}).") from None
    return found_again
