"""Attempts to reach another host or process, through every kind of socket."""

from __future__ import annotations

import socket
from contextlib import suppress
from functools import partial
from typing import Final

from tests.sandbox.attempt import Attempt
from tests.sandbox.seeing import has_open, leaked, reached
from tests.sandbox.stage import Stage

reach = partial(Attempt, kind="network")


def _stream(family: str, address: str) -> str:
    return f"s = socket.socket(socket.{family}); s.settimeout(5); s.connect({address}); s.sendall(b'hello')"


SNIFF: Final = """
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
hold()
s.settimeout(2)
for turn in range(200):
    print(s.recv(2000))
"""
LISTEN: Final = """
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(('0.0.0.0', @free_port@)); s.listen(5)
hold()
"""
NAME_QUERY: Final = r"""
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
name = b''.join(bytes([len(part)]) + part for part in b'@token@.tunnel.example'.split(b'.')) + b'\0'
s.sendto(b'\x12\x34\1\0\0\1\0\0\0\0\0\0' + name + b'\0\1\0\1', ('@resolver@', 53))
"""


def _talk(stage: Stage, _pids: tuple[int, ...]) -> str:
    """Exchange data over loopback between other processes of this machine."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as talker:
        for _ in range(20):
            talker.sendto(stage.secret.encode(), ("127.0.0.1", int(stage.value("udp"))))
    return ""


def _knock(stage: Stage, _pids: tuple[int, ...]) -> str:
    with suppress(OSError), socket.create_connection(("127.0.0.1", int(stage.value("free_port"))), timeout=2):
        return "it can be reached from outside"
    return ""


def _holding(family: int, kind: int, proto: int) -> str:
    return f"s = socket.socket({family}, {kind}, {proto})\nhold()"


def _opens(name: str, numbers: tuple[int, int, int], what: str, *, root: bool = False) -> Attempt:
    return reach(name=name, script=_holding(*numbers), midway=has_open(what), needs=("root",) if root else ())


def _unix(name: str, prop: str, *, root: bool = False) -> Attempt:
    return reach(
        name=name, script=_stream("AF_UNIX", f"'@{prop}@'"), seen=reached(prop), needs=("root",) if root else ()
    )


def _abstract(kind: str, prop: str) -> str:
    return (
        f"s = socket.socket(socket.AF_UNIX, socket.{kind}); s.connect('@{prop}@'.replace('@', chr(0), 1)); s.send(b'x')"
    )


NETWORK: Final = (
    reach(name="TCP to loopback", script=_stream("AF_INET", "('127.0.0.1', @tcp@)"), seen=reached("tcp")),
    reach(name="TCP to loopback, IPv6", script=_stream("AF_INET6", "('::1', @tcp_six@)"), seen=reached("tcp_six")),
    reach(
        name="TCP to the machine's own address",
        script=_stream("AF_INET", "('@own_address@', @tcp@)"),
        seen=reached("tcp"),
    ),
    reach(name="TCP to 0.0.0.0", script=_stream("AF_INET", "('0.0.0.0', @tcp@)"), seen=reached("tcp")),
    reach(
        name="TCP, data before the connection",
        script="s = socket.socket(); s.sendto(b'hello', 0x20000000, ('127.0.0.1', @tcp@))",
        seen=reached("tcp"),
    ),
    reach(
        name="TCP over several paths",
        script="s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262); s.connect(('127.0.0.1', @tcp@))",
        seen=reached("tcp"),
    ),
    reach(
        name="TCP by the shell",
        script="echo hello >/dev/tcp/127.0.0.1/@tcp@",
        language="bash",
        seen=reached("tcp"),
    ),
    reach(
        name="UDP to loopback",
        script="s = socket.socket(type=socket.SOCK_DGRAM); s.sendto(b'x', ('127.0.0.1', @udp@))",
        seen=reached("udp"),
    ),
    reach(name="a question to a name server", script=NAME_QUERY, seen=reached("resolver"), needs=("root",)),
    reach(name="a server that others can reach", script=LISTEN, midway=_knock),
    reach(name="an abstract socket", script=_abstract("SOCK_STREAM", "abstract"), seen=reached("abstract")),
    reach(
        name="an abstract socket for datagrams",
        script=_abstract("SOCK_DGRAM", "abstract_dgram"),
        seen=reached("abstract_dgram"),
    ),
    _unix("a socket beside the workspace", "socket"),
    _unix("the agent of ssh", "agent"),
    _unix("a socket in shared /tmp", "tmp_socket"),
    _unix("a socket in /run, as Docker's", "docker", root=True),
    reach(
        name="a socket through a process of the host",
        script=_stream("AF_UNIX", "'/proc/@victim@/cwd/service.sock'") + " # @socket@",
        seen=reached("socket"),
    ),
    reach(name="listening to loopback", script=SNIFF, midway=_talk, seen=leaked, needs=("root",)),
    _opens("raw packets", (2, 3, 1), " RAW", root=True),
    _opens("the hypervisor", (40, 1, 0), "VSOCK"),
    _opens("the kernel's routes", (16, 3, 0), "NETLINK"),
    _opens("the kernel's packet filter", (16, 3, 12), "NETLINK"),
    _opens("packets past the kernel", (44, 3, 0), "XDP", root=True),
)
