"""Ids of tests as runs have them, and the files in which those stand.

Settings say where pytest looks for tests (`python_files`, `testpaths`), so names of files tell only of the usual ones.
What ran is known.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from greenroom.abilities.checks.command_lines import placed
from greenroom.core.ports.checks import NAMED

TOLD: Final = 5
"""Names of tests in a sentence."""

PYTHON: Final = ".py"
UNNAMED: Final = "a test that it does not name"


def own_name(test: str) -> str:
    """What a test is called where it stands: without its file, class or module, and without its parameters."""
    return test.partition("[")[0].rpartition("::")[2]


def is_doctest(test: str) -> bool:
    """Whether it is an example in the words of a source: pytest calls it by the dotted name of what is documented."""
    file, name = test.partition("::")[0], own_name(test)
    return file.endswith(PYTHON) and ("." in name or name == posixpath.basename(file).removesuffix(PYTHON))


def files_of(tests: Iterable[str], folder: str = ".") -> frozenset[str]:
    """The Python files of these tests. Ids may be seen from the check's own folder, or from the root."""
    files = {one.partition("::")[0] for one in tests if "::" in one}
    return frozenset(path for one in files if one.endswith(PYTHON) for path in (one, placed(folder, one)))


def unnamed(number: int) -> Iterator[str]:
    """Ids for so many tests that a runner has only counted."""
    return (f"{UNNAMED} ({one})" for one in range(1, number + 1))


def is_named(test: str) -> bool:
    """Whether it is known which test this is."""
    return not test.startswith(UNNAMED)


def listed(names: Sequence[str]) -> str:
    """The first of these, for a sentence, and how many more there are."""
    least = "at least " if len(names) >= NAMED else ""  # such a list may be cut
    more = f" and {least}{len(names) - TOLD} more" if len(names) > TOLD else ""
    return ", ".join(names[:TOLD]) + more
