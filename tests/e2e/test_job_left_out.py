"""What lies in the copy of a job and can be in no commit: it is nowhere else, so it never goes without a word."""

from pathlib import Path

import pytest

from tests.e2e.jobs import call, done, git
from tests.e2e.workshop import Workshop, turns
from tests.tiers import has_bubblewrap

pytestmark = pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap is not installed")


@pytest.mark.req("G-1")
def test_work_in_a_submodule_is_said_to_be_left_behind(tmp_path: Path) -> None:
    shop = Workshop(tmp_path)
    library = Workshop(tmp_path / "library").repo
    git(shop.repo, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library), "sm")
    git(shop.repo, "commit", "--quiet", "--message=second")
    plan = call("propose_plan", 9, steps=["Do it"], files=["app.txt", "sm/app.txt"])
    into = call("rewrite", 2, file="sm/app.txt", content="bad\n")
    says = [done("Changed `app.txt` and `sm/app.txt`.")] * 4
    alone = ("Paint it.", "--non-interactive", "--output-format", "json")
    ended = shop.runs([plan, turns("good, red"), into, *says], *alone)
    assert (ended.code, ended.json["verified"]) == (0, True), ended.out
    report = ended.json["report"]
    assert isinstance(report, list)
    assert report[0].startswith("1 file changed")
    why = "Note: not delivered: sm/app.txt (in a submodule)"
    assert why in report
    nothing = shop.runs([plan, into, *says], *alone)
    assert (nothing.code, nothing.json["changes"], str(nothing.json["report"]).count(why)) == (7, [], 1)
