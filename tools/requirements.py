"""List the requirements that tests claim.

    ./go requirements [SOURCE | --unknown | --unreached]

The ids come from docs/requirements.md. The claims are `@pytest.mark.req("MAS-151", ...)` marks, also in a module's
`pytestmark`. This tool does not check whether a claim is true: the test does. It fails if a claim's tests drive only
modules that no user can reach.
"""

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import chain
from pathlib import Path

import greenroom

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("MA", "MAS", "AG", "RC", "AF", "G")
ROW = re.compile(r"^- \*\*((?:" + "|".join(SOURCES) + r")-\d+)\*\* (.*)$", re.MULTILINE)

TESTS = "greenroom.testing"
"""Helpers with which users test their own agents. They are documented, and reached from users' tests."""


def rows(manifest: str) -> list[tuple[str, str]]:
    """Return every (id, statement) of the manifest, in order."""
    return ROW.findall(manifest)


def marks(code: str) -> Iterator[tuple[str, int]]:
    """Yield every (id, line) of the `req` marks in this code."""
    calls = (node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call))
    for call in calls:
        if isinstance(call.func, ast.Attribute) and call.func.attr == "req":
            ids = (part for part in call.args if isinstance(part, ast.Constant))
            yield from ((str(part.value), part.lineno) for part in ids)


def wanted() -> dict[str, str]:
    """Return the statements of docs/requirements.md by id."""
    return dict(rows((ROOT / "docs" / "requirements.md").read_text("utf-8")))


def claimed() -> dict[str, list[str]]:
    """Return where each id is claimed, as `path:line`."""
    places: dict[str, list[str]] = {}
    for path in sorted((ROOT / "tests").rglob("*.py")):
        for name, line in marks(path.read_text("utf-8")):
            places.setdefault(name, []).append(f"{path.relative_to(ROOT)}:{line}")
    return places


def source(name: str) -> str:
    """Return the source of an id: MAS for MAS-151."""
    return name.rpartition("-")[0]


def counts() -> Iterator[str]:
    """Yield one line per source."""
    statements, places = wanted(), claimed()
    for prefix in SOURCES:
        names = [name for name in statements if source(name) == prefix]
        yield f"{prefix:4} {sum(name in places for name in names):4} of {len(names):4} claimed by a test"
    yield f"all  {len(statements.keys() & places.keys()):4} of {len(statements):4}"


def unclaimed(prefix: str) -> Iterator[str]:
    """Yield the requirements of one source that no test claims."""
    places = claimed()
    for name, statement in wanted().items():
        if source(name) == prefix and name not in places:
            yield f"{name:8} {statement}"


def unknown() -> Iterator[str]:
    """Yield marks with unknown ids."""
    statements = wanted()
    for name, places in sorted(claimed().items()):
        if name not in statements:
            yield f"{name}  {', '.join(places)}"


@cache
def imports(path: Path) -> set[str]:
    """Return the modules that a file imports at run time, at the top or in a function. Type imports are left out."""
    waiting: list[ast.AST] = [ast.parse(path.read_text("utf-8"))]
    found: set[str] = set()
    while waiting:
        node = waiting.pop()
        match node:
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                waiting += node.orelse
                continue
            case ast.Constant(value=str(value)) if value.startswith("greenroom."):
                found.add(value)  # a module that another process runs, or a folder of prompts
            case ast.Import(names=names):
                found |= {alias.name for alias in names}
            case ast.ImportFrom(module=str(module), names=names):
                found |= {module, *(f"{module}.{alias.name}" for alias in names)}
            case _:
                pass
        waiting += ast.iter_child_nodes(node)
    return found


def modules(folder: str, package: str) -> dict[str, Path]:
    """Return every module of a package by its dotted name."""
    found: dict[str, Path] = {}
    for path in (ROOT / folder).rglob("*.py"):
        parts = (package, *path.relative_to(ROOT / folder).with_suffix("").parts)
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def closure(starts: Iterable[str], known: Mapping[str, Path]) -> set[str]:
    """Return the known modules that these import, directly or indirectly, including themselves."""
    waiting, found = [name for name in starts if name in known], set[str]()
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        packages = {name.rsplit(".", depth)[0] for depth in range(1, name.count(".") + 1)}
        waiting += (packages | imports(known[name])) & known.keys()
    return found


def unreached_modules() -> set[str]:
    """Return modules that neither the command line nor a public name reaches. Agent files, model replies and child
    processes all start from the command line."""
    known = {name: path for name, path in modules("src/greenroom", "greenroom").items() if not name.startswith(TESTS)}
    public = {f"greenroom.{home}" for home in vars(greenroom)["_HOME"].values()}
    starts = {name for name in known if name.startswith("greenroom.cli")} | public
    return known.keys() - closure(starts, known)


def unreached() -> Iterator[str]:
    """Yield claims whose tests only drive modules that no user can reach, with those modules."""
    islands = unreached_modules()
    for name, places in sorted(claimed().items()):
        subjects = [imports(ROOT / place.rpartition(":")[0]) & islands for place in places]
        if all(subjects):
            yield f"{name:8} {', '.join(sorted(set[str]().union(*subjects)))}"


def main(arguments: list[str]) -> int:
    """Print the requested list. Return 2 for an invalid request."""
    unreachable = [] if arguments else [f"no user can reach: {line}" for line in unreached()]
    match arguments:
        case []:
            lines: Iterable[str] = chain(counts(), unreachable)
        case ["--unknown"]:
            lines = unknown()
        case ["--unreached"]:
            lines = unreached()
        case [prefix] if prefix in SOURCES:
            lines = unclaimed(prefix)
        case _:
            print(f"requirements: pass nothing, --unknown, --unreached or one of {', '.join(SOURCES)}", file=sys.stderr)
            return 2
    print(*lines, sep="\n")
    return 1 if unreachable else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
