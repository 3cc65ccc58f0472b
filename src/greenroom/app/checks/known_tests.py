"""Files that are known to hold tests, because some of them ran: names of files tell only of the usual ones."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from greenroom.abilities.checks.command_lines import placed
from greenroom.abilities.checks.ids_of_tests import files_of, is_doctest
from greenroom.app.checks.checker import base_of
from greenroom.core.base.records import record
from greenroom.core.ports.checks import Check, Checked, Report


@record
class Known:
    """`files` hold tests, `documented` ones are sources of which examples are run."""

    files: frozenset[str] = frozenset()
    documented: frozenset[str] = frozenset()


async def known_tests(
    checks: Sequence[Check], ran: Sequence[Checked], fetch: Callable[[str], Awaitable[bytes]], within: str = "."
) -> Known:
    """Those of the tests that these runs have named. `within` is the workspace's path in what is seen."""
    folders = {one.name: placed(within or ".", one.folder) for one in checks if one.kind == "test"}
    every = await base_of(Report(tree="", checks=tuple(one for one in ran if one.check in folders)), fetch)
    plain: set[str] = set()
    documented: set[str] = set()
    for name, one in every.items():
        examples = [test for test in one.tests if is_doctest(test)]
        plain |= files_of((test for test in one.tests if not is_doctest(test)), folders[name])
        documented |= files_of(examples, folders[name])
    return Known(files=frozenset(plain), documented=frozenset(documented - plain))
