"""Which requirements does a test claim?  ./go requirements [SOURCE | --unknown]

Reads the ids in docs/requirements.md and the marks `@pytest.mark.req("MAS-151", ...)`, also as a module's
`pytestmark`, in the tests. It does not judge whether a claim is true: that is what the test is for.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("MA", "MAS", "AG", "RC", "AF", "G")
ROW = re.compile(r"^- \*\*((?:" + "|".join(SOURCES) + r")-\d+)\*\* (.*)$", re.MULTILINE)


def rows(manifest: str) -> list[tuple[str, str]]:
    """Every (id, statement) of the manifest, in its order."""
    return ROW.findall(manifest)


def marks(code: str) -> Iterator[tuple[str, int]]:
    """Every (id, line) that a `req` mark in this code names."""
    calls = (node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call))
    for call in calls:
        if isinstance(call.func, ast.Attribute) and call.func.attr == "req":
            ids = (part for part in call.args if isinstance(part, ast.Constant))
            yield from ((str(part.value), part.lineno) for part in ids)


def wanted() -> dict[str, str]:
    """Statement by id, from docs/requirements.md."""
    return dict(rows((ROOT / "docs" / "requirements.md").read_text("utf-8")))


def claimed() -> dict[str, list[str]]:
    """Where each id is claimed, as `path:line`."""
    places: dict[str, list[str]] = {}
    for path in sorted((ROOT / "tests").rglob("*.py")):
        for name, line in marks(path.read_text("utf-8")):
            places.setdefault(name, []).append(f"{path.relative_to(ROOT)}:{line}")
    return places


def source(name: str) -> str:
    """The source that an id belongs to: MAS for MAS-151."""
    return name.rpartition("-")[0]


def counts() -> Iterator[str]:
    """One line per source."""
    statements, places = wanted(), claimed()
    for prefix in SOURCES:
        names = [name for name in statements if source(name) == prefix]
        yield f"{prefix:4} {sum(name in places for name in names):4} of {len(names):4} claimed by a test"
    yield f"all  {len(statements.keys() & places.keys()):4} of {len(statements):4}"


def unclaimed(prefix: str) -> Iterator[str]:
    """The requirements of one source that no test claims."""
    places = claimed()
    for name, statement in wanted().items():
        if source(name) == prefix and name not in places:
            yield f"{name:8} {statement}"


def unknown() -> Iterator[str]:
    """Marks that name no requirement."""
    statements = wanted()
    for name, places in sorted(claimed().items()):
        if name not in statements:
            yield f"{name}  {', '.join(places)}"


def main(arguments: list[str]) -> int:
    """Print what was asked for; 2 when it is not understood."""
    match arguments:
        case []:
            lines = counts()
        case ["--unknown"]:
            lines = unknown()
        case [prefix] if prefix in SOURCES:
            lines = unclaimed(prefix)
        case _:
            print(f"requirements: say nothing, --unknown or one of {', '.join(SOURCES)}", file=sys.stderr)
            return 2
    print(*lines, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
