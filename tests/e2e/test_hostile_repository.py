"""A repository whose own git settings name programs: no command of Greenroom runs them."""

from pathlib import Path

import pytest

from tests.e2e.jobs import Workshop, call, done, git, turns
from tests.fake_openai.scripts import Reply

ALONE = ("Paint it.", "--non-interactive", "--allow-unverified")
COMMANDS = (
    *("core.fsmonitor", "core.editor", "core.pager", "core.sshCommand", "core.alternateRefsCommand"),
    *("diff.external", "diff.evil.textconv", "diff.evil.command", "merge.evil.driver", "credential.helper"),
    *("filter.evil.clean", "filter.evil.smudge", "filter.evil.process", "remote.origin.uploadpack"),
)
HOOKS = ("pre-commit", "commit-msg", "post-commit", "post-checkout", "post-index-change", "reference-transaction")


def armed(shop: Workshop) -> Path:
    """Name a program in every setting of the repository, and return the file that it would write."""
    trap, sprung = shop.home.parent / "trap", shop.home.parent / "sprung"
    trap.write_text(f"#!/bin/sh\necho \"$0 $*\" >>'{sprung}'\ncat\n")
    trap.chmod(0o755)
    for name in COMMANDS:
        git(shop.repo, "config", name, str(trap))
    hooks = shop.home.parent / "hooks"
    hooks.mkdir()
    for name in HOOKS:
        (hooks / name).symlink_to(trap)
    git(shop.repo, "config", "core.hooksPath", str(hooks))
    return sprung


def painting() -> list[Reply]:
    return [turns("good, red"), done("It is red.")]


def test_no_command_runs_what_only_the_repository_names(tmp_path: Path) -> None:
    shop = Workshop(tmp_path, **{".gitattributes": "*.txt diff=evil merge=evil\n"})
    sprung = armed(shop)
    ended = shop.runs(painting(), *ALONE)
    assert ended.code in (0, 7), ended.err
    for words in (("show", "last"), ("diff", "last"), ("workspaces", "list")):
        assert shop.types(*words).code == 0
    applied = shop.types("apply", "last")
    assert (applied.code, shop.reads()) == (0, "good, red\n"), applied.err
    assert "so they do not run. Use --hooks to run them." in applied.err
    assert shop.types("blame", "app.txt:1").code == 0
    assert (shop.types("undo", "last").code, shop.reads()) == (0, "good\n")
    assert not sprung.exists(), sprung.read_text()
    assert shop.types("apply", "last", "--hooks").code == 0
    assert "pre-commit" in sprung.read_text(), "or nothing here can fail"


def test_files_that_need_a_filter_of_the_repository_are_refused_with_the_way_out(tmp_path: Path) -> None:
    shop = Workshop(tmp_path, **{".gitattributes": "*.txt filter=evil\n"})
    sprung = armed(shop)
    refused = shop.runs(painting(), *ALONE)
    assert refused.code == 3, refused.err
    assert "'app.txt' needs the git filter 'evil'" in refused.err
    assert "git config --global --edit" in refused.err
    assert not sprung.exists()


@pytest.mark.parametrize("place", ["HOME", "GIT_CONFIG_GLOBAL"])
def test_a_filter_of_the_persons_own_settings_runs(tmp_path: Path, place: str) -> None:
    own = tmp_path / "own" / ".gitconfig"
    own.parent.mkdir()
    own.write_text('[filter "rot"]\n\tclean = tr a-z n-za-m\n\tsmudge = tr a-z n-za-m\n')
    shop = Workshop(tmp_path, **{"rot/.gitattributes": "* filter=rot\n"})
    around = {place: str(own.parent if place == "HOME" else own)}
    replies = [call("rewrite", 1, file="rot/new.txt", content="hello\n"), done("It is red.")]
    assert shop.runs(replies, *ALONE, **around).code in (0, 7)
    assert shop.types("apply", "last", **around).code == 0
    assert (shop.reads("rot/new.txt"), git(shop.repo, "show", "HEAD:rot/new.txt")) == ("hello\n", "uryyb\n")
