"""Attempts to plant what git runs through settings, and to read what is disguised as a repository or a tool."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Final

from tests.sandbox.attempt import Attempt, Tried
from tests.sandbox.attempts.git import COMMIT, EVIL, plant, repository
from tests.sandbox.seeing import PWNED, by_person, leaked
from tests.sandbox.stage import Stage

COMMON: Final = r"""
repository('@work@/fake')
try:
    write('@work@/.git/commondir', '@work@/fake/.git\n')
except OSError as fault:
    print(fault)
hold()
"""


def _deep_hooks(stage: Stage) -> None:
    """Put the repository's hooks into a nested folder."""
    repository(stage)
    stage.put(stage.work / "tools" / "hooks" / "pre-push", "#!/bin/sh\n").chmod(0o755)
    by_person(stage, stage.work, "git", "config", "core.hooksPath", "tools/hooks  # as always")
    (stage.work / ".git" / "config").write_text(
        (stage.work / ".git" / "config").read_text("utf-8").replace('"', ""), encoding="utf-8"
    )


def _hooks_everywhere(stage: Stage) -> None:
    """Use the same hooks folder for all repositories of the person."""
    repository(stage)
    with (stage.home / ".gitconfig").open("a", encoding="utf-8") as file:
        file.write("[core]\n\thooksPath = .githooks\n")


def _while_it_runs(stage: Stage, _pids: tuple[int, ...]) -> str:
    by_person(stage, stage.work, "git", "status")
    return "the planted program ran" if (stage.outside / PWNED).exists() else ""


def _of_other(stage: Stage) -> None:
    """Make a repository with the secret, and a workspace that claims to belong to it."""
    for words in (("git", "init", "-q"), ("git", "add", "notes.md"), ("git", "commit", "-qm", "first")):
        by_person(stage, stage.other, *words)
    (stage.other / "notes.md").unlink()
    by_person(stage, stage.other, "chmod", "-R", "a+rwX", ".")
    stage.put(stage.work / ".git", f"gitdir: {stage.other}/.git\n")


def _venv(name: str) -> partial[Attempt]:
    def ready(stage: Stage) -> None:
        stage.put(stage.work / name / "pyvenv.cfg", f"home = {stage.home}/.ssh/x\n")

    return partial(Attempt, kind="reads", seen=leaked, ready=ready)


def _passwords(stage: Stage) -> None:
    """Store passwords in a folder among uv's tools."""
    stage.put(stage.home / ".local/share/uv/credentials/credentials.toml", f"{stage.secret}\n")
    stage.put(stage.home / ".local/share/uv/tools/tool", "a tool")


def _listens(stage: Stage) -> None:
    """Listen on a socket in the workspace from another process of the machine."""
    stage.value("inner_socket")


def _heard(stage: Stage, _tried: Tried) -> str:
    canary = stage.canaries[stage.value("inner_socket")]
    heard = b""
    with suppress(BlockingIOError):
        while not heard:
            with canary.accept()[0] as caller:
                heard = caller.recv(1)  # the sandbox may connect once, and sends nothing
    return "the canary was reached" if heard else ""


DISGUISED: Final = (
    plant(
        name="a hook, in another folder in the place of the one above",
        script="os.rename('tools', 'old'); os.makedirs('tools/hooks')\n"
        "os.symlink('@work@/evil', 'tools/hooks/pre-commit')",
        ready=_deep_hooks,
        seen=COMMIT,
    ),
    plant(
        name="a hook where all repositories of a person have them",
        script="os.mkdir('.githooks'); os.symlink('@work@/evil', '.githooks/pre-commit')",
        ready=_hooks_everywhere,
        seen=COMMIT,
    ),
    Attempt(
        kind="git",
        name="another folder for what is common, while it runs",
        script=EVIL + COMMON,
        ready=repository,
        midway=_while_it_runs,
    ),
)

DISCLOSED: Final = (
    Attempt(
        kind="reads",
        name="another repository, by a file that says it is this one's",
        script="git -c safe.directory='*' -C @other@ show HEAD:notes.md",
        language="bash",
        ready=_of_other,
        seen=leaked,
    ),
    *(
        _venv(name)(name=f"a key of ssh, as the Python of {name}", script="cat @home@/.ssh/id_ed25519", language="bash")
        for name in (".venv", "venv")
    ),
    Attempt(
        kind="reads",
        name="passwords among tools",
        script="cat @home@/.local/share/uv/credentials/credentials.toml",
        language="bash",
        ready=_passwords,
        seen=leaked,
    ),
)

DOORS: Final = (
    Attempt(
        kind="network",
        name="a service of the host that listens in the workspace",
        script="s = socket.socket(socket.AF_UNIX); s.connect('@work@/service.sock'); s.sendall(b'x')",
        ready=_listens,
        seen=_heard,
    ),
)
