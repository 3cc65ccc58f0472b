"""Attempts to plant a repository of git so that nobody who looks for it finds it, understands it, or may read it."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Final

from tests.sandbox.attempt import Attempt, Tried, nothing
from tests.sandbox.attempts.git import COMMIT, EVIL, plant, repository
from tests.sandbox.seeing import PWNED, by_person, leaked, ran
from tests.sandbox.stage import Stage

hide = partial(plant, ready=nothing, seen=ran("git", "status", folder="@work@/sub"))
"""In a workspace that is no repository, in a folder of it."""

SHELL: Final = "for name in ('objects', 'refs'): os.makedirs(f'{where}/{name}')\nopen(f'{where}/HEAD', 'w').close()\n"
LONG: Final = r"""
repository('@work@/sub')
text = open('sub/.git/config').read()
write('@work@/sub/.git/config', '[user]\n' + '\tname = somebody\n' * 70000 + text)
"""
WITHOUT_HEAD: Final = r"""
repository('@work@/x', bare=True)
os.unlink('x/HEAD'); os.makedirs('x/worktrees/w'); os.mkdir('sub')
add('x/config', '[core]\n\tworktree = @work@/sub\n')
write('@work@/x/worktrees/w/HEAD', 'ref: refs/heads/main\n')
write('@work@/x/worktrees/w/commondir', '../..\n')
write('@work@/x/worktrees/w/gitdir', '@work@/sub/.git\n')
write('@work@/sub/.git', 'gitdir: @work@/x/worktrees/w\n')
"""
COMMON: Final = r"""
repository('@work@/fake')
try:
    write('@work@/.git/commondir', '@work@/fake/.git\n')
except OSError as fault:
    print(fault)
hold()
"""
SPELT: Final = "repository('@work@/sub')\n[os.mkdir('sub/' + one) for one in ('.Git', '.GIT', '.gIT', '.giT', '.GiT')]"


def _nested(stage: Stage) -> None:
    """A repository below is a person's."""
    (stage.work / "sub").mkdir()
    by_person(stage, stage.work / "sub", "git", "init", "-q", "-b", "main")


def _deep_hooks(stage: Stage) -> None:
    """The repository's hooks are in a folder of a folder."""
    repository(stage)
    stage.put(stage.work / "tools" / "hooks" / "pre-push", "#!/bin/sh\n").chmod(0o755)
    by_person(stage, stage.work, "git", "config", "core.hooksPath", "tools/hooks  # as always")
    (stage.work / ".git" / "config").write_text(
        (stage.work / ".git" / "config").read_text("utf-8").replace('"', ""), encoding="utf-8"
    )


def _hooks_everywhere(stage: Stage) -> None:
    """A person has the same folder of hooks in all repositories."""
    repository(stage)
    with (stage.home / ".gitconfig").open("a", encoding="utf-8") as file:
        file.write("[core]\n\thooksPath = .githooks\n")


def _while_it_runs(stage: Stage, _pids: tuple[int, ...]) -> str:
    by_person(stage, stage.work, "git", "status")
    return "the planted program ran" if (stage.outside / PWNED).exists() else ""


def _of_other(stage: Stage) -> None:
    """A repository with the secret in it, and a workspace that says it belongs to it."""
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
    """uv keeps passwords among its tools, in a folder."""
    stage.put(stage.home / ".local/share/uv/credentials/credentials.toml", f"{stage.secret}\n")
    stage.put(stage.home / ".local/share/uv/tools/tool", "a tool")


def _listens(stage: Stage) -> None:
    """Somebody of the machine listens in the workspace."""
    stage.value("inner_socket")


def _heard(stage: Stage, _tried: Tried) -> str:
    canary = stage.canaries[stage.value("inner_socket")]
    heard = b""
    with suppress(BlockingIOError):
        while not heard:
            with canary.accept()[0] as caller:
                heard = caller.recv(1)  # whoever puts up walls may knock, and says nothing
    return "the canary was reached" if heard else ""


DISGUISED: Final = (
    hide(name="a repository below, beside other spellings", script=SPELT),
    hide(
        name="a repository below what looks like one",
        script=f"where = '@work@/a'\n{SHELL}repository('@work@/a/sub')",
        seen=ran("git", "status", folder="@work@/a/sub"),
    ),
    hide(
        name="a repository below, in a workspace that looks like one",
        script=f"where = '@work@'\n{SHELL}repository('@work@/sub')",
    ),
    hide(name="a setting after a mebibyte of others", script=LONG),
    hide(name="what is common to worktrees, without a HEAD", script=WITHOUT_HEAD),
    hide(name="a repository that nobody may look into", script="repository('@work@/sub'); os.chmod('sub/.git', 0o311)"),
    hide(
        name="a repository in a folder that nobody may look into",
        script="repository('@work@/sub'); os.chmod('sub', 0o311)",
    ),
    hide(
        name="a repository in a folder that nobody may change",
        script="repository('@work@/sub'); os.chmod('sub/.git', 0o555); os.chmod('sub', 0o555)",
    ),
    hide(
        name="hooks that nobody may look at",
        script="repository('@work@/sub'); os.mkdir('sub/.git/hooks'); write('@work@/sub/.git/config', '')\n"
        "os.symlink('@work@/evil', 'sub/.git/hooks/pre-commit'); os.chmod('sub/.git/hooks', 0o311)",
        seen=ran("git", "commit", "-qm", "x", "--allow-empty", folder="@work@/sub"),
    ),
    hide(
        name="a repository in a repository's own folder",
        script="repository('@work@/.git/objects/sub')",
        ready=repository,
        seen=ran("git", "status", folder="@work@/.git/objects/sub"),
    ),
    hide(
        name="another one in the place of a repository below",
        script="os.rename('sub', 'old'); repository('@work@/sub')",
        ready=_nested,
    ),
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
