"""Make the data folders of `data/`: `python -m tests.acceptance.make_data`.

Each folder is made at its place below PLACE, because git's worktrees and the log hold absolute paths, and packed as a
tar. They were made once, by the code before the deletions of this part. They show that old data on users' disks can
still be read, so do not make them again.

- waiting: a run with an edit that waits for the approval of a command.
- applied: a verified and applied run, a failed run and an unverified run; a trusted agent of the project, and an MCP
  server with its pins.
- organisation: an organisation whose manager waits for Ann's answer.
"""

import fcntl
import os
import shutil
import sys
import tarfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.acceptance.company import Company
from tests.acceptance.kit import (
    ALONE,
    BAD,
    GOOD,
    JSON,
    PLAN,
    SETTINGS,
    VERIFIED,
    WAITING,
    Answer,
    Desk,
    call,
    replace,
    say,
    serve_model,
)
from tests.acceptance.test_safety import BOB, MCP_SERVER

PLACE = Path("/tmp/greenroom-acceptance")
DATA = Path(__file__).parent / "data"
WAITS: tuple[Answer, ...] = (
    PLAN,
    replace("good", "good, red"),
    call("execute_script", 2, script="echo made > made.txt"),
    say("Done."),
)


def make_waiting(folder: Path) -> None:
    """Stop at a command that needs an approval."""
    ended = Desk(folder).run(*WAITS, words=("--yes", *JSON))
    assert ended.code == WAITING, ended.err


def make_applied(folder: Path) -> None:
    """Make three runs, trust and pins."""
    desk = Desk(folder)
    desk.put(".greenroom/agents/bob.md", BOB)
    desk.commit("an agent")
    assert desk.type("trust", "--yes").code == 0
    server = folder / "server"
    server.mkdir()
    (server / "server.py").write_text(MCP_SERVER)
    (server / "words").write_text("Counts.")
    added = desk.type("mcp", "add", "small", "--", "python3", str(server / "server.py"), str(server))
    assert added.code == 0, added.err
    assert desk.work(*BAD, text="Break it.").code == 1
    assert desk.run(*GOOD, text="Judge it.", words=ALONE).code == 1
    assert desk.work(*GOOD, words=("--apply",)).code == VERIFIED
    assert desk.read() == "good, red\n"


def make_organisation(folder: Path) -> None:
    """Make an organisation whose manager has asked Ann."""
    desk = Desk(folder, SETTINGS)
    with serve_model(Company()) as server:
        assert desk.type("org", "new", "tea", "--person", "ann", **server.reach).code == 0
        assert desk.type("inbox", "--say", "A tea guide, please.", "--wait", **server.reach).code == WAITING


MAKERS: Mapping[str, Callable[[Path], None]] = {
    "waiting": make_waiting,
    "applied": make_applied,
    "organisation": make_organisation,
}


@contextmanager
def hold(name: str) -> Iterator[Path]:
    """Reserve the empty place of a data folder for one process at a time, and remove it afterwards."""
    PLACE.mkdir(exist_ok=True)
    folder, lock = PLACE / name, PLACE / f"{name}.lock"
    with suppress(PermissionError):  # other users of this machine come here too, and may have made it
        PLACE.chmod(0o777)
        lock.touch()
        lock.chmod(0o666)
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def own(member: tarfile.TarInfo, _: str) -> tarfile.TarInfo:
    """Make the unpacking user the owner."""
    member.uid, member.gid, member.uname, member.gname = os.getuid(), os.getgid(), "", ""
    return member


def disown(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Remove the users of this machine from the archive."""
    member.uid, member.gid, member.uname, member.gname = 0, 0, "", ""
    return member


def unpack(name: str, folder: Path) -> Desk:
    """Unpack a data folder at its place and return its person."""
    with tarfile.open(DATA / f"{name}.tar.gz") as archive:
        archive.extraction_filter = own  # `filter=` came with Python 3.11.4
        archive.extractall(folder)
    return Desk.at(folder)


def main() -> None:
    """Make all data folders."""
    os.environ["GREENROOM_SANDBOX"] = "off"
    DATA.mkdir(exist_ok=True)
    for name, make in MAKERS.items():
        with hold(name) as folder:
            make(folder)
            with tarfile.open(DATA / f"{name}.tar.gz", "w:gz") as archive:
                archive.add(folder, ".", filter=disown)
        sys.stdout.write(f"{name}: {(DATA / f'{name}.tar.gz').stat().st_size:,} bytes\n")


if __name__ == "__main__":
    main()
