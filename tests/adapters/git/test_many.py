"""Very many files: more names than a command line of the system takes."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from tests.adapters.git.person import Person
from tests.adapters.git.shapes import plain

MANY = 50_000


async def test_contents_of_very_many_files_are_read(tmp_path: Path) -> None:
    person = Person(tmp_path / "tree")
    plain(person)
    blob = person.git("rev-parse", "HEAD:a.txt").strip()
    paths = [f"a/folder/with/a/long/name/to/fill/the/line/{number}.txt" for number in range(MANY)]
    assert sum(map(len, paths)) > os.sysconf("SC_ARG_MAX")
    listed = "".join(f"100644 {blob} 0\t{path}\n" for path in paths)
    process = await asyncio.create_subprocess_exec(
        *("git", "update-index", "--index-info"), cwd=person.root, env=person.env, stdin=asyncio.subprocess.PIPE
    )
    await process.communicate(listed.encode())
    tree = person.git("write-tree").strip()
    commit = person.git("commit-tree", tree, "-m", "many").strip()
    found = await (await person.workspace()).contents(commit, [*paths, "nothing", "a/folder"])
    assert (len(found), set(found.values())) == (MANY, {(person.root / "a.txt").read_bytes()})
