"""The workflow in the how-to for CI: as careful as the page says, and its own lines do what they are for."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest
import yaml

from tests.docs.test_howto import ROOT, blocks
from tests.e2e.jobs import Workshop, done, git, turns
from tests.e2e.provider import KEY, provider, reached
from tests.e2e.terminal import PATIENCE, environment
from tests.tiers import has_bubblewrap

PAGE = ROOT / "docs" / "howto" / "ci.md"
EXITS = re.compile(r"^\| (\d+)", re.MULTILINE)


def workflow() -> Mapping[str, object]:
    (text,) = blocks(PAGE, "yaml")
    return cast("Mapping[str, object]", yaml.safe_load(text))


def job(name: str) -> Mapping[str, object]:
    jobs = cast("Mapping[str, Mapping[str, object]]", workflow()["jobs"])
    return jobs[name]


def lines(name: str, step: str) -> str:
    """The script of a step."""
    steps = cast("list[Mapping[str, str]]", job(name)["steps"])
    return next(one["run"] for one in steps if one.get("name") == step)


def test_each_job_has_the_least_rights_and_no_agent_runs_beside_a_token_that_writes() -> None:
    (text,) = blocks(PAGE, "yaml")
    assert workflow()["permissions"] == {}
    assert job("change")["permissions"] == {"contents": "read"}
    assert job("propose")["permissions"] == {"contents": "write", "pull-requests": "write"}
    assert "secrets." not in str(job("propose"))
    assert "'persist-credentials': False" in str(job("change"))
    assert not any(word in text for word in ("pull_request:", "pull_request_target:"))
    assert all("timeout-minutes" in job(name) for name in ("change", "propose"))
    for name in ("change", "propose"):
        for step in cast("list[Mapping[str, str]]", job(name)["steps"]):
            assert "${{" not in step.get("run", ""), "a stranger's words would be a part of the script"


@pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap is not installed")
def test_its_lines_make_a_branch_of_a_verified_change_and_push_it(tmp_path: Path) -> None:
    shop, out, origin = Workshop(tmp_path), tmp_path / "out", tmp_path / "origin"
    out.mkdir()
    git(tmp_path, "clone", "--quiet", "--bare", str(shop.repo), str(origin))
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", str(origin), str(clone))
    own = {"OUT": str(out), "BRANCH": "greenroom/7-1", "REQUEST": "--in-place: paint it.\n\n$(touch x)"}
    with provider([turns("good, red"), done("It is red.")]) as fake:
        ended = script(shop, shop.repo, lines("change", "Do it"), **own, **reached(fake, KEY))
        assert "--in-place: paint it." in str(fake.requests[0].body["messages"])
    assert ended.returncode == 0, ended.stderr
    assert '"verified":true' in (out / "result.json").read_text()
    assert shop.reads() == "good\n"
    ended = script(shop, clone, lines("propose", "Push"), **own)
    assert ended.returncode == 0, ended.stderr
    assert git(origin, "show", "greenroom/7-1:app.txt") == "good, red\n"
    assert (out / "body.md").read_text().startswith("It is red.\n\n1 file changed, +1 −1\n")


@pytest.mark.prove
@pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap is not installed")
def test_after_a_change_that_is_not_verified_there_is_nothing_to_push(tmp_path: Path) -> None:
    shop, out = Workshop(tmp_path), tmp_path / "out"
    out.mkdir()
    own = {"OUT": str(out), "BRANCH": "greenroom/7-1", "REQUEST": "Paint it."}
    with provider([turns("bad"), *(done("I could not."),) * 3]) as fake:
        ended = script(shop, shop.repo, lines("change", "Do it"), **own, **reached(fake, KEY))
    assert ended.returncode == 1
    assert not (out / "change.bundle").exists()
    assert git(shop.repo, "branch", "--list", "greenroom/*") == ""


def test_the_page_names_every_exit_code_that_a_run_can_have() -> None:
    assert EXITS.findall(PAGE.read_text("utf-8")) == ["0", "1", "2", "3", "4", "5", "6", "7", "130"]


def script(shop: Workshop, folder: Path, text: str, **own: str) -> subprocess.CompletedProcess[str]:
    """Run lines as a runner does: with bash, ended by the first that fails. `greenroom` is this one."""
    tools = shop.home / "bin"
    tools.mkdir(parents=True, exist_ok=True)
    called = tools / "greenroom"
    called.write_text(f'#!/bin/sh\nexec {sys.executable} -m greenroom.cli "$@"\n')
    called.chmod(0o755)
    around = environment(shop.home, GREENROOM_SANDBOX="auto", GIT_CONFIG_GLOBAL=os.devnull, **own)
    around["PATH"] = f"{tools}:{around['PATH']}"
    words = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", text]
    return subprocess.run(words, cwd=folder, env=around, capture_output=True, text=True, timeout=PATIENCE, check=False)
