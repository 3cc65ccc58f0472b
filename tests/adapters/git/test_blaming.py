"""What is said of a line that is none, or that nobody has."""

from __future__ import annotations

from pathlib import Path

import pytest

from greenroom.core.ports.workspace import WorkspaceFault
from tests.adapters.git.person import Person
from tests.adapters.git.shapes import plain


@pytest.mark.parametrize(
    ("path", "line", "why"),
    [
        ("nosuch.py", 1, "There is no file 'nosuch.py' in '{root}'."),
        ("a.txt/below", 1, "There is no file 'a.txt/below' in '{root}'."),
        ("a.txt", 31, "There is no line 31 in 'a.txt': it has 30 lines."),
        ("one", 2, "There is no line 2 in 'one': it has 1 line."),
        ("empty", 1, "There is no line 1 in 'empty': it is empty."),
        ("keep", 1, "'keep' is a folder. Name a file in it."),
        ("link", 1, "'link' is a link to 'a.txt', and has no lines of its own."),
        ("picture", 1, "'picture' is binary, so it has no lines."),
    ],
)
async def test_what_has_no_such_line_is_named_for_what_it_is(tmp_path: Path, path: str, line: int, why: str) -> None:
    person = Person(tmp_path / "tree")
    plain(person)
    person.write("empty", "")
    person.write("one", "alone")
    person.write("picture", b"\x89PNG\n\0\0")
    (person.root / "link").unlink(missing_ok=True)
    (person.root / "link").symlink_to("a.txt")
    workspace = await person.workspace()
    with pytest.raises(WorkspaceFault) as caught:
        await workspace.blame(path, line)
    assert (caught.value.reason, str(caught.value)) == ("name", why.format(root=person.root))
