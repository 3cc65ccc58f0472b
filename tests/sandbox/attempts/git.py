"""Attempts to plant something that runs when a person uses git there."""

from __future__ import annotations

from functools import partial
from typing import Final

from tests.sandbox.attempt import Attempt, Ready, Seen, nothing
from tests.sandbox.seeing import by_person, ran
from tests.sandbox.stage import Stage

EVIL: Final = r"""
write('@work@/evil', '#!/bin/sh\ntouch @outside@/pwned\n')
os.chmod('@work@/evil', 0o755)
EVIL = '\n[core]\n\tfsmonitor = @work@/evil\n'

def repository(path, bare=False):
    where = path if bare else path + '/.git'
    for name in ('objects', 'refs'):
        os.makedirs(f'{where}/{name}', exist_ok=True)
    write(f'{where}/HEAD', 'ref: refs/heads/main\n')
    tree = f'\tworktree = {path}\n' if bare else ''
    write(f'{where}/config', '[core]\n\trepositoryformatversion = 0\n\tbare = false\n' + tree + EVIL)

def add(path, text):
    with open(path, 'a') as file:
        file.write(text)

"""
"""A program that makes a file outside, and ways to make git run it. The script does not run it itself."""

STATUS: Final = ran("git", "status")
COMMIT: Final = ran("git", "commit", "-qm", "x", "--allow-empty")
DIFF: Final = ran("git", "diff")


def repository(stage: Stage) -> None:
    """Make the workspace a repository with one commit, and a change since."""
    (stage.work / "a.txt").write_text("one\n", encoding="ascii")
    by_person(stage, stage.work, "git", "init", "-q", "-b", "main")
    by_person(stage, stage.work, "git", "add", ".")
    by_person(stage, stage.work, "git", "commit", "-qm", "first")
    (stage.work / "a.txt").write_text("two\n", encoding="ascii")


def _worktree(stage: Stage) -> None:
    """Make the workspace a worktree of a repository outside."""
    main = stage.outside / "main"
    main.mkdir()
    by_person(stage, main, "git", "init", "-q", "-b", "main")
    by_person(stage, main, "git", "commit", "-qm", "first", "--allow-empty")
    by_person(stage, main, "git", "worktree", "add", "-q", "-b", "side", str(stage.work))
    by_person(stage, main, "chmod", "-R", "a+rwX", str(main))


def _included(stage: Stage) -> None:
    """Include a file of the workspace in the repository's settings."""
    repository(stage)
    stage.put(stage.work / "team.gitconfig", "[core]\n\tabbrev = 8\n")
    by_person(stage, stage.work, "git", "config", "include.path", "../team.gitconfig")


def _hooks_here(stage: Stage) -> None:
    """Use files of the workspace as the repository's hooks, as many projects do."""
    repository(stage)
    stage.put(stage.work / ".githooks" / "pre-push", "#!/bin/sh\n").chmod(0o755)
    by_person(stage, stage.work, "git", "config", "core.hooksPath", ".githooks")


def plant(name: str, script: str, *, ready: Ready = repository, seen: Seen = STATUS) -> Attempt:
    """Plant something with this script; then a person runs `git status` or another command."""
    return Attempt(kind="git", name=name, script=EVIL + script, ready=ready, seen=seen)


into_none = partial(plant, ready=nothing)
"""The workspace is not a repository yet."""

into_worktree = partial(plant, ready=_worktree)

SWAPPED: Final = "os.rename('.git', 'old'); repository('@work@')"

GIT: Final = (
    plant(
        name="a hook",
        script="os.makedirs('.git/hooks', exist_ok=True); os.symlink('@work@/evil', '.git/hooks/pre-commit')",
        seen=COMMIT,
    ),
    plant(
        name="a folder of hooks, swapped",
        script="os.rename('.git/hooks', 'h'); os.mkdir('n'); os.symlink('@work@/evil', 'n/pre-commit')\n"
        "os.rename('n', '.git/hooks')",
        seen=COMMIT,
    ),
    plant(
        name="a hook in the workspace's own folder of hooks",
        script="os.symlink('@work@/evil', '.githooks/pre-commit')",
        ready=_hooks_here,
        seen=COMMIT,
    ),
    plant(name="a setting that runs a program", script="add('.git/config', EVIL)"),
    plant(
        name="a setting that runs a program, by a new file moved over",
        script="old = open('.git/config').read(); write('@work@/c', old + EVIL); os.rename('c', '.git/config')",
    ),
    plant(
        name="a setting with another folder of hooks",
        script="add('.git/config', '[core]\\n\\thooksPath = @work@/n\\n')\n"
        "os.mkdir('n'); os.symlink('@work@/evil', 'n/pre-commit')",
        seen=COMMIT,
    ),
    plant(
        name="settings that include others",
        script="write('@work@/more', EVIL); add('.git/config', '[include]\\n\\tpath = @work@/more\\n')",
    ),
    plant(
        name="settings that include others on a branch",
        script="write('@work@/more', EVIL)\n"
        "add('.git/config', '[includeIf \"onbranch:main\"]\\n\\tpath = @work@/more\\n')",
    ),
    plant(
        name="an included file of the workspace",
        script="add('team.gitconfig', EVIL)",
        ready=_included,
    ),
    plant(
        name="settings of the worktree",
        script="add('.git/config', '[extensions]\\n\\tworktreeConfig = true\\n')\n"
        "write('@work@/.git/config.worktree', EVIL)",
    ),
    plant(
        name="another folder for what is common",
        script="repository('@work@/fake'); write('@work@/.git/commondir', '@work@/fake/.git\\n')",
    ),
    plant(
        name="a program that shows differences",
        script="add('.git/config', '[diff]\\n\\texternal = @work@/evil\\n')",
        seen=DIFF,
    ),
    plant(
        name="a program that makes text of a file",
        script="add('.git/config', '[diff \"e\"]\\n\\ttextconv = @work@/evil\\n')\n"
        "write('@work@/.gitattributes', '* diff=e\\n')",
        seen=DIFF,
    ),
    plant(
        name="a program that a file goes through",
        script="add('.git/config', '[filter \"e\"]\\n\\tclean = @work@/evil\\n')\n"
        "write('@work@/.gitattributes', '* filter=e\\n')",
    ),
    plant(name="another repository in its place", script=SWAPPED),
    plant(
        name="a link to another repository in its place",
        script="repository('@work@/fake'); os.rename('.git', 'old'); os.symlink('fake/.git', '.git')",
    ),
    plant(
        name="a repository below",
        script="repository('@work@/sub')",
        seen=ran("git", "status", folder="@work@/sub"),
    ),
    into_none(name="a repository where there was none", script="repository('@work@')"),
    into_worktree(
        name="a worktree's file that leads to a repository",
        script="repository('@work@/fake'); write('@work@/.git', 'gitdir: @work@/fake/.git\\n')",
    ),
    into_worktree(
        name="a hook of the repository that a worktree belongs to",
        script="os.makedirs('@outside@/main/.git/hooks', exist_ok=True)\n"
        "os.symlink('@work@/evil', '@outside@/main/.git/hooks/pre-commit')",
        seen=ran("git", "commit", "-qm", "x", "--allow-empty", folder="@outside@/main"),
    ),
    into_worktree(
        name="settings of the repository that a worktree belongs to",
        script="add('@outside@/main/.git/config', EVIL)",
    ),
    into_worktree(
        name="settings of a worktree outside",
        script="add('@outside@/main/.git/config', '[extensions]\\n\\tworktreeConfig = true\\n')\n"
        "write('@outside@/main/.git/worktrees/work/config.worktree', EVIL)",
    ),
    into_worktree(
        name="another folder for what is common to worktrees",
        script="repository('@work@/fake')\n"
        "write('@outside@/main/.git/worktrees/work/commondir', '@work@/fake/.git\\n')",
    ),
)
