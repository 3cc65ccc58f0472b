"""The table of a team run on a real terminal of 80 columns."""

from pathlib import Path

import pytest

from tests.e2e.jobs import Desk, Turns, call, founded
from tests.e2e.provider import provider
from tests.e2e.typing import ENTER
from tests.tiers import has_bubblewrap

pytestmark = pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap is not installed")


@pytest.mark.req("RC-111", "RC-131")
def test_80_columns_show_the_table_while_it_runs_and_the_results_at_the_end(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "home", founded(tmp_path / "repo"))
    replies = (
        call("read_code", 1, file="export.py"),
        call("answer", 2, status="failed", summary="It cannot be ported."),
    )
    model = Turns(replies, held=(1,))
    with provider(model) as fake, desk.sits(fake, "batch", "port it", "export.py", columns="80") as terminal:
        terminal.until("1 item, agent refactor, at most 8 at once")
        terminal.until("[c]")
        terminal.press("c", ENTER)
        terminal.until("use all")
        terminal.press("y", ENTER)
        terminal.until("[phase 1/2] port it")
        terminal.until("export-py")
        terminal.until("thinks")
        terminal.until("0 of 1 subtasks")
        model.let(1)
        terminal.until("Not finished (1): export-py.")
        assert terminal.ends() == 1
    seen = terminal.seen.splitlines()
    rows = [line for line in seen if line.startswith(("●  refactor-1", "✗  export-py"))]
    assert any("thinks" in line for line in rows)
    assert any("It cannot be" in line for line in rows), "the table at the end says why"
    assert max(map(len, rows)) <= 80
