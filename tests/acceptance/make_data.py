"""Make the data folders of `data/`: `python -m tests.acceptance.make_data`.

Each is made at its place below PLACE, since git's worktrees and the log hold absolute paths, and packed as a tar.
They were made once, by the code before the deletions of this part, and are not made again: they show that what people
have on their disks is still read. Made anew, they would show nothing.

- waiting: a run with an edit that waits for a yes to a command.
- applied: a verified run that was applied, a run that failed and one that nothing could judge; an agent of the project
  that the person trusts, and an MCP server with its pins.
- organisation: an organisation whose manager waits for an answer of Ann's.
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
    """Stop at a command that needs a yes."""
    ended = Desk(folder).run(*WAITS, words=("--yes", *JSON))
    assert ended.code == WAITING, ended.err


def make_applied(folder: Path) -> None:
    """Three runs, trust and pins."""
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
    """The manager has asked Ann."""
    desk = Desk(folder, SETTINGS)
    with serve_model(Company()) as server:
        assert desk.type("team", "new", "tea", "--person", "ann", **server.reach).code == 0
        assert desk.type("talk", "--say", "A tea guide, please.", "--wait", **server.reach).code == WAITING


MAKERS: Mapping[str, Callable[[Path], None]] = {
    "waiting": make_waiting,
    "applied": make_applied,
    "organisation": make_organisation,
}


@contextmanager
def hold(name: str) -> Iterator[Path]:
    """The empty place of a data folder, for one process of this machine at a time; it is removed afterwards."""
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
    """Whoever unpacks a file owns it."""
    member.uid, member.gid, member.uname, member.gname = os.getuid(), os.getgid(), "", ""
    return member


def disown(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Nothing of this machine's users is packed."""
    member.uid, member.gid, member.uname, member.gname = 0, 0, "", ""
    return member


def unpack(name: str, folder: Path) -> Desk:
    """A data folder at its place; its person."""
    with tarfile.open(DATA / f"{name}.tar.gz") as archive:
        archive.extraction_filter = own  # `filter=` came with Python 3.11.4
        archive.extractall(folder)
    return Desk.at(folder)


def main() -> None:
    """Make them all."""
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
