"""Large, read-only, vanished, linked and concurrently edited files: right, or refused with the reason."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path

import pytest

from greenroom.abilities.tools.files import write
from tests.abilities.tools.files.desk import Desk

MEGABYTES_50 = 50 * 1024 * 1024
EDITS = [{"search": "old", "replace": "new"}]
CALLS: dict[str, dict[str, object]] = {"read_code": {}, "patch": {"edits": EDITS}, "rewrite": {"content": "x"}}


@pytest.mark.timeout(60)
# Reaches no line that other tests do not, and to be measured takes it twice as long.
@pytest.mark.no_cover
async def test_a_file_of_50_megabytes_is_edited_right(desk: Desk) -> None:
    line = b"0123456789abcdef" * 4 + b"\r\n"
    half = line * (MEGABYTES_50 // len(line) // 2)
    path = desk.put("large.txt", half + b"old\r\n" + half)
    said = await desk.works("patch", file="large.txt", edits=EDITS)
    assert path.read_bytes() == half + b"new\r\n" + half
    assert len(said) < 2000
    assert "Read on with" in await desk.works("read_code", file="large.txt", start_line=400_000)


async def test_a_file_that_is_too_large_is_refused(desk: Desk) -> None:
    path = desk.root / "huge.txt"
    with path.open("wb") as file:
        file.truncate(write.LIMIT + 1)
    for tool, more in CALLS.items():
        reason, why = await desk.fails(tool, file="huge.txt", **more)
        assert reason == "too_large"
        assert "67,108,865 bytes; at most 67,108,864 are read" in why
    assert path.stat().st_size == write.LIMIT + 1


async def test_a_content_that_is_too_large_is_refused(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write, "LIMIT", 10)
    assert (await desk.fails("rewrite", file="a.txt", content="x" * 11))[0] == "too_large"


async def test_a_read_only_file_is_not_replaced(desk: Desk) -> None:
    path = desk.put("a.txt", "old\n")
    path.chmod(0o444)
    outcome = await desk.call("patch", file="a.txt", edits=EDITS)
    assert outcome.state == "failed"
    assert outcome.error == "'a.txt' is read-only (mode 444). Nothing was written."
    assert path.read_text() == "old\n"


async def test_a_file_that_vanishes_is_said_to_have_vanished(desk: Desk) -> None:
    path = desk.put("a.txt", "old\n")
    await desk.works("read_code", file="a.txt")
    path.unlink()
    assert (await desk.fails("patch", file="a.txt", edits=EDITS))[0] == "missing"
    await desk.works("rewrite", file="a.txt", content="old\n")


async def test_a_link_is_written_through_and_stays_a_link(desk: Desk) -> None:
    path = desk.put("real.txt", "old\n")
    (desk.root / "link.txt").symlink_to("real.txt")
    await desk.works("patch", file="link.txt", edits=EDITS)
    assert path.read_text() == "new\n"
    assert (desk.root / "link.txt").is_symlink()
    assert desk.said[0].key == "real.txt"


async def test_a_link_out_of_the_workspace_is_refused(desk: Desk, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("old\n")
    (desk.root / "link.txt").symlink_to(outside)
    (desk.root / "up").symlink_to("..")
    for name in ("link.txt", "up/outside.txt"):
        reason, why = await desk.fails("patch", file=name, edits=EDITS)
        assert reason == "outside"
        assert f"{name!r} leads out of the workspace" in why
        assert (await desk.fails("read_code", file=name))[0] == "outside"
    assert outside.read_text() == "old\n"


@pytest.mark.timeout(20)
async def test_pipes_sockets_and_devices_are_refused_and_never_waited_for(desk: Desk) -> None:
    os.mkfifo(desk.root / "pipe")
    (desk.root / "linked").symlink_to("pipe")
    held = socket.socket(socket.AF_UNIX)
    here = Path.cwd()
    os.chdir(desk.root)  # a socket's whole path may be too long
    held.bind("socket")
    os.chdir(here)
    for name in ("pipe", "linked", "socket"):
        for tool, more in CALLS.items():
            reason, why = await desk.fails(tool, file=name, **more)
            assert (reason, "a pipe, a socket or a device" in why) == ("kind", True)
    assert "0 matches" in await desk.works("search_files", pattern="x")
    held.close()


async def test_of_agents_that_edit_one_file_at_once_none_loses_the_other_s_work(desk: Desk) -> None:
    path = desk.put("a.txt", "".join(f"<{number}>\n" for number in range(20)))
    desks = [Desk(desk.root) for _ in range(20)]

    async def edit(number: int) -> bool:
        edits = [{"search": f"<{number}>", "replace": f"[{number}]"}]
        outcome = await desks[number].call("patch", file="a.txt", edits=edits)
        assert outcome.state == "finished" or "somebody has changed it meanwhile" in outcome.error
        return outcome.state == "finished"

    left = set(range(20))
    for _ in range(20):
        done = await asyncio.gather(*(edit(number) for number in sorted(left)))
        left -= {number for number, ok in zip(sorted(left), done, strict=True) if ok}
        if not left:
            break
    assert path.read_text() == "".join(f"[{number}]\n" for number in range(20))
