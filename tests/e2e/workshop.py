"""A person in a small repository of theirs whose only check is quick, and models that do jobs there."""

from pathlib import Path

from tests.app.trust.yes import agree
from tests.e2e.jobs import PERSON, call, git
from tests.e2e.provider import provider, reached, settings
from tests.e2e.terminal import Ended, greenroom
from tests.fake_openai import Answer
from tests.fake_openai.scripts import Script

CHECK = "import sys\n\nsys.exit(0 if 'good' in open('app.txt').read() else 1)\n"
SETTINGS = '[checks.quick]\nrun = "python3 check.py"\n'
"""In the person's own file: nobody has to confirm it."""


def turns(word: str, number: int = 1) -> Answer:
    """A reply that makes what is good something else."""
    return call("patch", number, file="app.txt", edits=[{"search": "good", "replace": word}])


class Workshop:
    """`home` is the person's, `repo` what they work in."""

    def __init__(self, folder: Path, own: str = SETTINGS, **files: str) -> None:
        self.home, self.repo = folder / "home", folder / "repo"
        settings(self.home, own)
        for name, text in {"app.txt": "good\n", "check.py": CHECK, **files}.items():
            self.puts(name, text)
        git(self.repo, "init", "--quiet", "--initial-branch=main")
        git(self.repo, "add", "--all")
        git(self.repo, "commit", "--quiet", "--message=first")

    def puts(self, name: str, text: str) -> None:
        """Write a file there."""
        path = self.repo / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def reads(self, name: str = "app.txt") -> str:
        """What a file of theirs holds."""
        return (self.repo / name).read_text()

    def trusts(self) -> None:
        """Agree to what the repository brings."""
        agree(self.home / "config", self.repo)

    def types(self, *words: str, stdin: str | None = None, **more: str) -> Ended:
        """A command, typed there; nobody is at a terminal."""
        around = {"GREENROOM_SANDBOX": "auto", **PERSON, **more}
        return greenroom(self.home, *words, stdin=stdin, cwd=str(self.repo), **around)

    def runs(self, replies: Script, *words: str, stdin: str | None = None, **more: str) -> Ended:
        """A job with these replies."""
        with provider(replies) as fake:
            return self.types("run", *words, stdin=stdin, **reached(fake), **more)
