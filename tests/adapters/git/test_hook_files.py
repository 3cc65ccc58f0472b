"""What of some work a person's hooks would run when it is committed is found before, and need not run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from greenroom.adapters.git.workspaces import GitWorkspace
from greenroom.core.ports.workspace import Applied, WorkspaceFault
from tests.adapters.git.person import Person, opened, worked
from tests.adapters.git.shapes import plain
from tests.adapters.git.test_committing import hook

FRAMEWORK = "exec python3 -mpre_commit hook-impl --config=.pre-commit-config.yaml --hook-type=pre-commit"
LOCAL = "- repo: local\n  hooks:\n  - id: x\n    entry: python -m tools.lint\n"


@pytest.fixture
def person(tmp_path: Path) -> Person:
    person = Person(tmp_path / "tree")
    plain(person)
    return person


async def done(person: Person, files: Mapping[str, str]) -> tuple[GitWorkspace, str, str]:
    """Work that makes these files what is said here; base and tip of it."""
    workspace = await person.workspace()
    worktree = await opened(workspace)
    for name, text in files.items():
        Person(Path(worktree.folder)).write(name, text)
    return workspace, worktree.base, (await worked(worktree, str(files))).commit


async def found(person: Person, *names: str, **texts: str) -> list[str]:
    workspace, base, tip = await done(person, {**dict.fromkeys(names, "new\n"), **texts})
    return list(await workspace.hooks(base, tip))


@pytest.mark.req("G-2")
@pytest.mark.parametrize(
    ("folder", "changed", "led"),
    [
        (".githooks", ".githooks/pre-commit", True),
        (".githooks", ".githooks/lib/deep.sh", True),
        (".husky/_", ".husky/pre-commit", True),
        (".", "pre-commit", True),
        (".", "other", False),
        (".githooks", "other/pre-commit", False),
        ("../outside", "pre-commit", False),
    ],
)
async def test_hooks_that_lie_in_the_tree_are_seen(person: Person, folder: str, changed: str, led: bool) -> None:
    person.git("config", "core.hooksPath", folder)
    assert await found(person, changed, "keep/b.py") == ([changed] if led else [])


@pytest.mark.parametrize(
    ("script", "changed", "led"),
    [
        ("exec ./scripts/check.sh", ["scripts/check.sh"], ["scripts/check.sh"]),
        ('"$(git rev-parse --show-toplevel)/scripts/check.py"', ["scripts/check.py"], ["scripts/check.py"]),
        ("sh $TOP/scripts/check.sh", ["scripts/check.sh"], ["scripts/check.sh"]),
        ("sh first.sh", ["second.sh"], ["second.sh"]),
        (FRAMEWORK, [".pre-commit-config.yaml"], [".pre-commit-config.yaml"]),
        (FRAMEWORK, ["tools/lint.py"], ["tools/lint.py"]),
        ("lefthook run pre-commit", ["lefthook.yml", ".lefthook/a.sh"], [".lefthook/a.sh", "lefthook.yml"]),
        ("make lint", ["Makefile"], ["Makefile"]),
        ("cd web && npm run lint", ["web/package.json"], ["web/package.json"]),
        ("exit 0", ["Makefile", "first.sh", "lefthook.yml", ".husky/pre-commit"], []),
        ("ruff check README.md", ["README.md"], []),
    ],
)
async def test_what_a_hook_names_is_followed(person: Person, script: str, changed: list[str], led: list[str]) -> None:
    person.write("first.sh", "./second.sh\n")
    person.write(".pre-commit-config.yaml", LOCAL)
    person.commit_all("second")
    hook(person, "pre-commit", script)
    assert await found(person, *changed) == led


@pytest.mark.req("G-2")
@pytest.mark.parametrize(
    ("script", "changed", "led"),
    [
        ("cd scripts && sh lint.sh", ["scripts/lint.sh"], ["scripts/lint.sh"]),
        ("python3 scripts/lint.py", ["scripts/rules.py"], ["scripts/rules.py"]),
        ("cd $DEEP && python3 lint.py", ["scripts/rules.py"], ["scripts/rules.py"]),
        ("python3 top.py", ["rules.py", "other.py"], ["rules.py"]),
        ("python3 looks.py", ["rules.py", "NOTES.md"], ["rules.py"]),
        ("node tools/lint.js", ["tools/rules.js"], ["tools/rules.js"]),
        ("for f in hooks.d/*.sh; do sh $f; done", ["hooks.d/a.sh"], ["hooks.d/a.sh"]),
        ("for f in hooks.d/*.sh; do sh $f; done", ["else/b.py", "NOTES.md"], ["else/b.py"]),
        ('for f in *; do "./$f"; done', ["keep/b.py"], ["keep/b.py"]),
        ("git diff --cached --name-only | xargs -n1 sh", ["keep/b.py"], ["keep/b.py"]),
        ("run-parts ci/d", ["keep/b.py"], ["keep/b.py"]),
        (". ./lint.cfg", ["lint.cfg"], ["lint.cfg"]),
        ("sh notes.txt", ["notes.txt", "others.txt"], ["notes.txt"]),
        ('sh "my scripts/lint.sh"', ["my scripts/lint.sh"], ["my scripts/lint.sh"]),
        ("sh my\\ scripts/lint.sh", ["my scripts/lint.sh"], ["my scripts/lint.sh"]),
        ("perl -Ilib /opt/lint.pl", ["lib/Rules.pm"], ["lib/Rules.pm"]),
        ("make lint", ["mk/l.mk"], ["mk/l.mk"]),
        ("sh 脚本/检查.sh", ["脚本/检查.sh"], ["脚本/检查.sh"]),
    ],
)
async def test_what_a_hook_may_run_is_seen_however_it_comes_to_it(
    person: Person, script: str, changed: list[str], led: list[str]
) -> None:
    person.write("scripts/lint.py", "import rules\n")
    person.write("top.py", "import rules\n")
    person.write("looks.py", "import glob\n")
    person.write("Makefile", "include mk/l.mk\nlint:\n\t@$(LINT)\n")
    person.commit_all("second")
    hook(person, "pre-commit", script)
    assert await found(person, *changed) == led


GENERATED = """#!/usr/bin/env bash
# File generated by pre-commit: https://pre-commit.com
INSTALL_PYTHON=/usr/bin/python3
ARGS=(hook-impl --config=.pre-commit-config.yaml --hook-type=pre-commit)
HERE="$(cd "$(dirname "$0")" && pwd)"
ARGS+=(--hook-dir "$HERE" -- "$@")
if [ -x "$INSTALL_PYTHON" ]; then
    exec "$INSTALL_PYTHON" -mpre_commit "${ARGS[@]}"
elif command -v pre-commit > /dev/null; then
    exec pre-commit "${ARGS[@]}"
else
    echo '`pre-commit` not found.  Did you forget to activate your virtualenv?' 1>&2
    exit 1
fi"""
FAR = """repos:
- repo: https://github.com/astral-sh/ruff-pre-commit
  rev: v1
  hooks:
  - id: ruff
    files: ^src/
    args: [--fix, src]
- repo: local
  hooks:
  - id: black
    entry: black src
"""


@pytest.mark.parametrize(
    "script",
    [
        "ruff check",
        "black . && ruff check src",
        "exec uv run ruff check src tests",
        "git diff --cached --name-only -z | xargs -0 ruff check",
        "/usr/bin/env bin-check >/dev/null",
        "echo src is checked; exit 0",
        GENERATED,
    ],
)
async def test_a_hook_that_runs_nothing_of_the_tree_asks_nobody(person: Person, script: str) -> None:
    person.write(".pre-commit-config.yaml", FAR)
    person.commit_all("second")
    hook(person, "pre-commit", script)
    assert await found(person, "src/app.py", "tests/test_app.py", "bin/tool", "pyproject.toml", "setup.cfg") == []


async def test_a_hook_that_leads_to_more_files_than_are_read_may_run_anything(person: Person) -> None:
    for number in range(60):
        person.write(f"c{number}.sh", f"sh c{number + 1}.sh\n")
    person.commit_all("second")
    hook(person, "pre-commit", "sh c0.sh")
    assert await found(person, "keep/b.py", "NOTES.md") == ["keep/b.py"]


async def test_a_hook_that_leads_into_the_tree_is_seen_and_one_that_never_runs_is_not(person: Person) -> None:
    (person.root / ".git/hooks").mkdir(exist_ok=True)
    (person.root / ".git/hooks/pre-commit").symlink_to("../../run.sh")
    hook(person, "commit-msg", "sh keep/b.py").chmod(0o644)
    assert await found(person, "run.sh", "keep/b.py") == ["run.sh"]


async def test_of_a_package_only_what_is_run_counts(person: Person) -> None:
    about: dict[str, object] = {"name": "p", "scripts": {"lint": "node tools/lint.js"}, "main": "index.js"}
    person.write("package.json", json.dumps(about))
    person.commit_all("second")
    hook(person, "pre-commit", "npm run lint")
    more = {**about, "dependencies": {"left-pad": "1"}}
    assert await found(person, "index.js", **{"package.json": json.dumps(more)}) == []
    other = {**about, "scripts": {"lint": "curl evil"}}
    workspace, base, tip = await done(person, {"package.json": json.dumps(other), "tools/lint.js": "x"})
    assert list(await workspace.hooks(base, tip)) == ["package.json", "tools/lint.js"]
    workspace, base, tip = await done(person, {"package.json": "no json"})
    assert "package.json" in await workspace.hooks(base, tip)


async def test_programs_that_settings_of_git_name_are_seen(person: Person) -> None:
    person.git("config", "core.fsmonitor", "tools/watch.sh")
    person.git("config", "filter.x.clean", "python3 tools/clean.py %f")
    assert await found(person, "tools/watch.sh", "tools/clean.py") == ["tools/clean.py", "tools/watch.sh"]


@pytest.mark.req("G-2")
@pytest.mark.parametrize("own", ["", "mine\n"], ids=["whole files", "apart"])
@pytest.mark.parametrize("hooks", [True, False])
async def test_without_hooks_none_runs(person: Person, own: str, hooks: bool) -> None:
    for name in ("pre-commit", "prepare-commit-msg", "post-commit"):
        person.write(f".githooks/{name}", "#!/bin/sh\ntrue\n").chmod(0o755)
    person.commit_all("second")
    person.git("config", "core.hooksPath", ".githooks")
    if own:
        person.write("a.txt", own + (person.root / "a.txt").read_text())
    ran = {f".githooks/{one}": f"#!/bin/sh\ntouch .git/ran-{one}\n" for one in ("pre-commit", "post-commit")}
    text = (person.root / "a.txt").read_text()
    workspace, base, tip = await done(person, {**ran, "a.txt": f"{text}more\n"})
    applied = await workspace.apply("r1", base, tip)
    assert isinstance(applied, Applied)
    made = await workspace.commit(applied.id, "Do it", hooks=hooks)
    assert made.commit == person.git("rev-parse", "HEAD").strip()
    assert sorted(one.name for one in (person.root / ".git").glob("ran-*")) == (
        ["ran-post-commit", "ran-pre-commit"] if hooks else []
    )


async def test_a_filter_that_the_work_changes_is_not_run_without_a_word(person: Person) -> None:
    person.write(".gitattributes", "a.txt filter=x\n")
    person.write("tools/clean.sh", "cat\n")
    person.git("config", "filter.x.clean", "sh tools/clean.sh")
    person.commit_all("second")
    workspace, base, tip = await done(person, {"tools/clean.sh": "touch .git/ran; cat\n", "a.txt": "new\n"})
    applied = await workspace.apply("r1", base, tip)
    assert isinstance(applied, Applied)
    with pytest.raises(WorkspaceFault, match=r"Git itself runs tools/clean.sh.*are applied") as caught:
        await workspace.commit(applied.id, "Do it", hooks=False)
    assert (caught.value.reason, (person.root / ".git/ran").exists()) == ("hook", False)
