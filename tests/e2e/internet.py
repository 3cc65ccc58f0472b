"""A host that stands for the internet: an address of this machine that no program uses."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Final, Self

HERE: Final = "127.0.0.2"


class Internet:
    """Answers every request with a schema during the block. `asked` are the requests."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        heard = self.asked

        class Answers(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                heard.append(self.path)
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b'{"rows": "lists"}\n')

            def log_message(self, *_: object) -> None:
                """Discard the log."""

        self._server = ThreadingHTTPServer((HERE, 0), Answers)
        self._thread = threading.Thread(target=self._server.serve_forever)

    @property
    def host(self) -> str:
        """Its host name."""
        return f"{HERE}:{self._server.server_port}"

    @property
    def command(self) -> str:
        """A command that fetches something from there."""
        return f"curl -fsS http://{self.host}/schema.json"

    @property
    def settings(self) -> str:
        """Settings that allow access to this machine."""
        return f'\n[web]\nlocal = ["{self.host}"]\n'

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
