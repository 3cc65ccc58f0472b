"""`greenroom serve` beside another one of the same home."""

from pathlib import Path

import pytest

from greenroom.app.context import AppContext
from greenroom.app.runtime import Runtime
from greenroom.http.server import Server


async def test_a_second_server_at_a_port_learns_which_folder_the_first_one_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    runtime = await Runtime.open(home)
    servers = list[Server]()
    for name in ("one", "two", "three"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        servers.append(Server(AppContext(home), runtime, home))
    first, second, third = servers
    assert first.bind("127.0.0.1", 0, "")
    assert not second.bind("127.0.0.1", first.port, "")
    assert second.folder == tmp_path / "one"
    assert f":{first.port}/login?code=" in second.make_link()
    assert third.bind("127.0.0.1", 0, "")
    assert third.list_others() == [(str(first.port), tmp_path / "one")]
    assert first._access.token == third._access.token, "they share the token of their home"
    for server in servers:
        assert server._socket is not None
        assert server._lock is not None
        server._socket.close()
        server._lock.close()
    await runtime.close()
