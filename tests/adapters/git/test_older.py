"""What an older version has written down can still be undone: its paper has no trees, and contents as on the disk."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from greenroom.core.ports.workspace import Undone
from tests.adapters.git.person import Person
from tests.adapters.git.shapes import plain
from tests.adapters.git.test_committing import brought
from tests.conformance.workspace_case import tree_of

GONE = ("old", "new", "revert_old", "revert_new")


def made_older(person: Person, ref: str) -> None:
    """Make a paper what it was: without trees, with folders and an index."""
    paper = json.loads(person.git("show", f"{ref}:paper"))
    older = {name: value for name, value in paper.items() if name not in GONE}
    older |= {
        "leave": [{"path": "go", "mode": 493}],
        "come": [],
        "indexed": [{"path": "a.txt", "mode": "", "blob": ""}],
    }
    place = person.root / ".git/paper"
    place.write_text(json.dumps(older))
    blob = person.git("hash-object", "-w", str(place)).strip()
    rows = [line for line in person.git("ls-tree", ref).splitlines() if line.endswith("\tpaper")]
    others = [line for line in person.git("ls-tree", ref).splitlines() if line not in rows and " blob " in line]
    listing = person.root / ".git/listing"
    listing.write_text("\n".join([f"100644 blob {blob}\tpaper", *others]) + "\n")
    person.git("config", "alias.older", f"!git mktree <{listing}")
    tree = person.git("older").strip()
    subject = person.git("log", "-1", "--format=%B", ref)
    person.git("update-ref", ref, person.git("commit-tree", tree, "-m", subject).strip())


@pytest.mark.parametrize("how", ["files", "commit", "revert"])
async def test_what_an_older_version_has_applied_is_undone(tmp_path: Path, how: str) -> None:
    person = Person(tmp_path / "tree")
    plain(person)
    before = tree_of(person.root)
    workspace, _, applied = await brought(person)
    if how != "files":
        await workspace.commit(applied.id, "Do it")
    if how == "revert":
        person.write("more", "more\n")
        person.commit_all("more")
    made_older(person, "refs/greenroom/r1/@applied/1")
    again = await person.workspace()
    (found,) = await again.applied("r1")
    assert (found.state, found.paths) == ("applied", applied.paths)
    assert isinstance(await again.undo(applied.id, revert=how == "revert"), Undone)
    now = tree_of(person.root)
    now.pop("more", None)
    assert now == before
    assert person.git("status", "--porcelain") == ""
