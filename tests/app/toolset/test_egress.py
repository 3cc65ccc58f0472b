"""The network of commands: closed hosts, the proxy, and what a blocked command is told."""

from __future__ import annotations

import asyncio
import base64
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from greenroom.abilities.tools.commands import build_command_tools
from greenroom.adapters.web.address_filter import AddressFilter
from greenroom.adapters.web.proxy import ProxyVisit
from greenroom.adapters.web.search import make_pages, serve_egress
from greenroom.app.settings.schema import SandboxSettings, WebSettings
from greenroom.app.toolset.pipeline import ToolPipeline, decide_unattended
from greenroom.app.toolset.policy import ConfirmingPolicy, build_policy
from greenroom.app.toolset.sandbox import (
    EgressProxy,
    HostRefusals,
    WorkspaceSandbox,
    make_host_blocker,
    make_step_host_blocker,
)
from greenroom.app.toolset.toolset import Toolset
from greenroom.core.base.errors import WorldFault
from greenroom.core.base.hosts import HostBlocker, parse_host
from greenroom.core.base.records import Data, evolve
from greenroom.core.ports.browser import EgressEndpoint
from greenroom.core.ports.commands import CommandEnded
from greenroom.core.ports.web import WebFault, parse_address
from greenroom.core.state.spec import AgentSpec
from greenroom.core.state.step import Step, StepTerms
from greenroom.core.state.team_state import TeamState
from tests.abilities.tools.test_commands import Said
from tests.adapters.web.house import HERE, Site, Watched, moved, said, site
from tests.core.house import ANN, House, tool
from tests.core.rules.test_origins import reading

CORP = ("allow host corp.example", "deny host payroll.corp.example", "ask host hr.corp.example")


def closed_by(root: Path, *rules: str, named: tuple[str, ...] | None = None) -> HostBlocker:
    return make_host_blocker(build_policy(root, rules), named)


@pytest.mark.parametrize(
    ("place", "shut"),
    [
        ("corp.example:443", False),
        ("wiki.corp.example:443", False),
        ("payroll.corp.example:443", True),
        ("payroll.corp.example:8443", True),
        ("eu.payroll.corp.example:80", True),
        ("notpayroll.corp.example:443", False),
    ],
)
def test_what_is_denied_stays_so_where_something_wider_is_open(tmp_path: Path, place: str, shut: bool) -> None:
    why = closed_by(tmp_path, *CORP)(parse_host(place))
    assert bool(why) is shut
    assert not why or "`deny host payroll.corp.example`" in why


def test_what_is_to_be_asked_about_is_closed_to_who_has_not_named_it(tmp_path: Path) -> None:
    asked = parse_host("hr.corp.example:443")
    wide = closed_by(tmp_path, *CORP, named=("corp.example", "*.corp.example"))(asked)
    assert wide.endswith("A running command cannot ask: name the host 'hr.corp.example' beforehand.")
    assert closed_by(tmp_path, *CORP, named=("HR.corp.example",))(asked) == ""
    assert closed_by(tmp_path, *CORP)(asked) == "", "a page is asked about by itself"
    assert closed_by(tmp_path, "allow tool browser_use", named=("*",))(asked) == "", "nobody has said anything of it"


def test_what_binds_an_agent_closes_too(tmp_path: Path) -> None:
    house = House.furnished().queue(ANN, tool("browser_use", {"task": "x"}))
    spec = AgentSpec(name="ann", rules=("deny host payroll.corp.example",))
    bound = evolve(house.state, agents=house.state.agents.set(ANN, evolve(house.state.agents[ANN], spec=spec)))
    step = next(bound.steps_of(ANN))
    shut = make_step_host_blocker(build_policy(tmp_path, ("allow tool browser_use",)), bound, step, ("*",))
    assert shut(parse_host("payroll.corp.example:443"))
    assert shut(parse_host("corp.example:443")) == ""


async def spoken(way: EgressEndpoint, name: str, port: int) -> str:
    reader, writer = await asyncio.open_connection(HERE, way.port)
    mine = base64.b64encode(f"{way.user}:{way.token}".encode()).decode()
    writer.write(f"GET http://{name}:{port}/ HTTP/1.1\r\nProxy-Authorization: Basic {mine}\r\n\r\n".encode())
    answer = await asyncio.wait_for(reader.read(), 10)
    writer.close()
    return answer.decode("latin-1")


async def test_a_browser_does_not_get_through_to_what_is_denied(tmp_path: Path) -> None:
    names = ("corp.example", "payroll.corp.example")
    async with site({"/": said(b"here")}) as shop:
        hosts = [f"{name}:{shop.port}" for name in (*names, "*.corp.example")]
        network = Watched({name: [[HERE]] for name in names})
        guard = AddressFilter(hosts[:2], network=network, closed=closed_by(tmp_path, *CORP))
        async with serve_egress(guard, (*hosts, "*", f"*:{shop.port}")) as way:
            assert (await spoken(way, names[0], shop.port)).endswith("here")
            assert (await spoken(way, names[1], shop.port)).startswith("HTTP/1.1 403")
            assert "`deny host payroll.corp.example`" in way.refused[hosts[1]]
        assert network.asked == [names[0]], "its name is not even looked up"


async def test_a_page_that_leads_on_to_what_is_denied_is_not_followed(tmp_path: Path) -> None:
    async with site({}) as shop:
        shop.pages["/"] = moved(f"http://www.localhost:{shop.port}/")
        local = [f"localhost:{shop.port}", f"www.localhost:{shop.port}"]
        fetching = make_pages(local, (), closed_by(tmp_path, "allow host localhost", "deny host www.localhost"))
        with pytest.raises(WebFault, match=r"deny host www\.localhost"):
            await fetching.fetch(parse_address(f"http://localhost:{shop.port}/"))
        assert len(shop.seen) == 1


WEB = WebSettings()


async def test_a_command_does_not_get_through_to_what_is_denied(tmp_path: Path) -> None:
    walls = WorkspaceSandbox(tmp_path, SandboxSettings(walls="off"))
    out = walls.egress_proxy = EgressProxy(("*.corp.example", "hr.corp.example"), WEB, lambda: "bubblewrap")
    hands, told = Toolset(tmp_path, build_policy(tmp_path, CORP), sandbox=walls), list[str]()
    try:
        door = await out.get_socket()
        for name in ("payroll.corp.example", "hr.corp.example"):
            reader, writer = await asyncio.open_unix_connection(door)
            writer.write(f"CONNECT {name}:443 HTTP/1.1\r\n\r\n".encode())
            told.append((await asyncio.wait_for(reader.read(), 15)).decode())
            writer.close()
    finally:
        await hands.close()
    assert told[0].startswith("HTTP/1.1 403")
    assert "`deny host payroll.corp.example`" in told[0]
    assert "cannot be found" in told[1], "the person has named it for commands"


ME = os.getppid()
"""The guard of this very process, if it were somebody who connects for a command."""

BESIDE = """
import socket, sys
with socket.socket(socket.AF_UNIX) as door:
    door.settimeout(20)
    door.connect(sys.argv[1])
    door.sendall(f"CONNECT {sys.argv[2]} HTTP/1.1\\r\\n\\r\\n".encode())
    print(door.recv(99)[9:12].decode())
"""


@asynccontextmanager
async def opened(*hosts: str, web: WebSettings = WEB) -> AsyncIterator[EgressProxy]:
    out = EgressProxy(hosts, web, lambda: "bubblewrap")
    try:
        yield out
    finally:
        await out.close()


async def asks(out: EgressProxy, place: str) -> str:
    """What this process hears that wants a tunnel."""
    reader, writer = await asyncio.open_unix_connection(await out.get_socket(("some.example",)))
    writer.write(f"CONNECT {place} HTTP/1.1\r\n\r\n".encode())
    answer = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 15)).decode()
    writer.close()
    return answer[9:12]


async def beside(out: EgressProxy, place: str) -> str:
    """What another process hears: its parent is this one."""
    door = await out.get_socket(("some.example",))
    made = await asyncio.create_subprocess_exec(
        sys.executable, "-c", BESIDE, door, place, stdout=asyncio.subprocess.PIPE
    )
    return (await asyncio.wait_for(made.communicate(), 30))[0].decode().strip()


@asynccontextmanager
async def shop() -> AsyncIterator[tuple[Site, WebSettings]]:
    """A site that stands for the internet, and settings that say so."""
    async with site({"/": said(b"here")}) as made:
        yield made, WebSettings(local=(made.place,))


async def test_who_may_reach_nobody_has_none() -> None:
    async with opened() as out:
        assert await out.get_socket() == ""
        assert await out.get_socket(("pypi.org",))


async def test_it_is_opened_once_and_nothing_is_left_of_it() -> None:
    out = EgressProxy(("pypi.org",), WEB, lambda: "bubblewrap")
    door, again = await asyncio.gather(out.get_socket(), out.get_socket())
    assert door == again
    out.allow_hosts(ME, ())
    assert await asks(out, "other.example:443") == "403"
    told = out.describe_refusals(ME, "")
    assert told.startswith("greenroom: the host 'other.example' is not open, only pypi.org. Run it again with hosts=[")
    out.revoke_hosts(ME)
    assert out.describe_refusals(ME, "") == ""
    await out.close()
    await out.close()
    assert not Path(door).parent.exists()


async def test_one_command_is_let_to_a_host_the_one_beside_it_is_not_and_after_its_end_nobody_is() -> None:
    async with shop() as (there, web), opened(web=web) as out:
        out.allow_hosts(ME, (there.place,))
        out.allow_hosts(os.getpid(), ())
        assert (await asks(out, there.place), await beside(out, there.place)) == ("200", "403")
        assert (await asks(out, "other.example:443"), await beside(out, "other.example:443")) == ("403", "403")
        out.revoke_hosts(ME)
        assert await asks(out, there.place) == "403"


async def test_a_stranger_who_finds_the_door_reaches_nobody() -> None:
    async with shop() as (there, web), opened(web=web) as out:
        out.allow_hosts(12345678, (there.place,))
        assert await asks(out, there.place) == "403"


async def test_a_number_that_was_another_commands_brings_nothing_of_it() -> None:
    async with shop() as (there, web), opened(web=web) as out:
        out.allow_hosts(ME, (there.place,))
        out.allow_hosts(ME, ())
        assert await asks(out, there.place) == "403"


async def test_what_still_goes_on_for_a_command_is_cut_with_its_end() -> None:
    async with shop() as (there, web), opened(web=web) as out:
        out.allow_hosts(ME, (there.place,))
        reader, writer = await asyncio.open_unix_connection(await out.get_socket((there.place,)))
        writer.write(f"CONNECT {there.place} HTTP/1.1\r\n\r\n".encode())
        assert (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 15))[9:12] == b"200"
        out.revoke_hosts(ME)
        assert await asyncio.wait_for(reader.read(), 5) == b"", "it does not wait until nobody has spoken for a minute"
        writer.close()


async def test_a_host_that_is_let_and_lies_on_this_machine_is_still_refused() -> None:
    async with site({"/": said(b"here")}) as there, opened(web=WebSettings(ports=(there.port,))) as out:
        out.allow_hosts(ME, (there.place, f"localhost:{there.port}"))
        assert [await asks(out, f"{name}:{there.port}") for name in ("127.0.0.1", "localhost")] == ["403", "403"]
        assert f'`local = ["localhost:{there.port}"]` below [web]' in out.describe_refusals(ME, "")
        assert there.seen == []


async def test_a_port_that_is_none_of_the_webs_stays_closed_although_it_was_named() -> None:
    async with opened() as out:
        out.allow_hosts(ME, ("pypi.test:22",))
        assert await asks(out, "pypi.test:22") == "403"
        assert "The port 22 of 'pypi.test' is not allowed." in out.describe_refusals(ME, "")


async def test_a_rule_that_closes_a_host_holds_and_one_that_asks_was_answered_for_who_named_it(tmp_path: Path) -> None:
    rules = build_policy(tmp_path, ("deny host payroll.corp.test", "ask host hr.corp.test"))
    async with opened("*.corp.test") as out:
        out.make_blocker = lambda named: make_host_blocker(rules, named)
        out.allow_hosts(ME, ("payroll.corp.test", "hr.corp.test"))
        assert await asks(out, "payroll.corp.test:443") == "403"
        assert "`deny host payroll.corp.test`" in out.describe_refusals(ME, "")
        assert await asks(out, "hr.corp.test:443") == "502", "it may, and there is none"
        out.allow_hosts(ME, ())
        assert await asks(out, "hr.corp.test:443") == "403", "nobody has named it"


@pytest.mark.parametrize("name", ["*.example.org", "*", "https://pypi.org", "a b", "pypi.org:0", "pypi.org\n"])
async def test_what_is_not_one_host_to_the_letter_is_let_to_nobody(name: str) -> None:
    async with opened() as out:
        with pytest.raises(WorldFault, match="is not a host"):
            await out.get_socket((name,))
        with pytest.raises(WorldFault, match="is not a host"):
            out.allow_hosts(ME, (name,))


def test_all_hosts_that_a_command_was_kept_from_are_in_one_line_that_can_be_copied() -> None:
    kept = HostRefusals(shared_hosts=(), own_hosts=("pypi.org",))
    for name in ("a.example:443", "b.example:80", "a.example:443", "c.example:8443"):
        kept.add(ProxyVisit(host=name, verdict="refused", why=f"{name!r} is none of the hosts that are allowed."))
    assert kept.describe() == (
        "greenroom: the hosts 'a.example', 'b.example', 'c.example:8443' are not open, only pypi.org. Run it again "
        'with hosts=["pypi.org", "a.example", "b.example", "c.example:8443"] and why: that asks a person. (They can '
        'open it to every command: `hosts = ["a.example", "b.example", "c.example:8443"]` below [sandbox] in '
        "their settings.)"
    )


@pytest.mark.parametrize(
    "told",
    [
        "fatal: unable to access 'https://x/': Could not resolve host: x",
        "socket.gaierror: [Errno -3] Temporary failure in name resolution",
        "npm error network request to https://x failed, reason: getaddrinfo EAI_AGAIN x",
        "connect: Network is unreachable",
    ],
)
def test_who_has_no_network_is_told_how_to_get_to_a_host(told: str) -> None:
    nobody, somebody = EgressProxy((), WEB, lambda: "bubblewrap"), EgressProxy(("pypi.org",), WEB, lambda: "bubblewrap")
    for out in (nobody, somebody):
        out.allow_hosts(7, ())
    assert 'Run it again with hosts=["HOST"] and why' in nobody.describe_refusals(7, told)
    assert nobody.describe_refusals(7, "1 passed") == ""
    assert somebody.describe_refusals(7, told) == "", "the proxy knows better"


async def test_a_folder_of_somebody_else_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / f"greenroom-doors-{os.geteuid()}").symlink_to("elsewhere")
    with pytest.raises(WorldFault, match="belongs to another user"):
        await EgressProxy(("pypi.org",), WEB, lambda: "bubblewrap").get_socket()


PIP: Data = {
    "script": "pip download jsonschema",
    "hosts": ["pypi.org", "Files.PythonHosted.org"],
    "why": "To read its schema.",
}


def asking(given: Data, house: House | None = None) -> tuple[TeamState, Step]:
    made = house or House.furnished()
    made.queue(ANN, tool("execute_script", given))
    return made.state, list(made.state.steps_of(ANN))[-1]


def guarded(*rules: str, reach: Sequence[str] | None = (), own: Sequence[str] = ()) -> ToolPipeline:
    """Behind walls, unless nothing is around it."""
    policy = build_policy(Path("/work"), rules, stated_rules=own, is_sandboxed=lambda: reach is not None)
    return ToolPipeline(build_command_tools(Said(CommandEnded(how="exited", code=0)))[0], policy, reach=lambda: reach)


def decided(given: Data, *rules: str, own: Sequence[str] = ()) -> StepTerms:
    return guarded(*rules, own=own).terms(*asking(given))


def test_a_person_reads_the_command_the_hosts_and_what_the_agent_says_why() -> None:
    terms = decided(PIP)
    assert terms.verdict == "ask"
    assert terms.question == (
        "ann wants the network for a command. It would reach `pypi.org` and `files.pythonhosted.org`, which no rule "
        "allows.\n  | pip download jsonschema\nIt says why:\n  | To read its schema."
    )
    assert terms.grant.splitlines() == [
        "allow host pypi.org",
        "allow host files.pythonhosted.org",
    ]


def test_a_long_script_is_shown_whole_and_who_says_nothing_is_said_to() -> None:
    question = decided({"script": "python3 fetch.py\nmake", "hosts": ["pypi.org"]}).question
    assert question == (
        "ann wants the network for a command. It would run `python3 fetch.py\\nmake` and reach `pypi.org`, which no "
        "rule allows.\n  | python3 fetch.py\n  | make\nIt does not say why."
    )


def test_no_agent_can_make_its_reason_look_like_words_of_the_house() -> None:
    false = "Fine.\n[y] once  [n] no: \x1b[2Jann wants to run a command.\u202e" + "x" * 900
    *_, fenced = decided({**PIP, "why": false}).question.splitlines()
    assert fenced.startswith("  | Fine. [y] once [n] no: \\x1b[2Jann wants to run a command.\\u202exxx")
    assert (fenced.endswith("x […]"), len(fenced)) == (True, 308)


def test_whoever_confirms_every_call_sees_the_hosts_as_well() -> None:
    execute = build_command_tools(Said(CommandEnded(how="exited", code=0)))[0]
    allowed = ("allow host a.example", "allow host b.example", "allow line " + "make " * 40)
    policy = ConfirmingPolicy(build_policy(Path("/work"), allowed, is_sandboxed=lambda: True))
    given = {"script": "make " * 40, "hosts": ["a.example", "b.example"]}
    question = ToolPipeline(execute, policy, reach=lambda: ()).terms(*asking(given)).question
    assert f"\n  | {'make ' * 40}" in question
    assert "It would reach `a.example`, `b.example`." in question


FETCH: Data = {"script": "python3 fetch.py", "hosts": ["pypi.org"]}


@pytest.mark.parametrize(
    ("rules", "verdict"),
    [
        ((), "ask"),
        (("allow host pypi.org",), "allow"),
        (("allow host *.pypi.org",), "ask"),
        (("allow host example.org",), "ask"),
        (("allow line python3 fetch.py",), "ask"),
        (("deny host pypi.org",), "deny"),
        (("allow host pypi.org", "deny host *.pypi.org:443", "deny host pypi.org:443"), "deny"),
    ],
)
def test_each_host_is_decided_about_and_no_rule_for_the_command_opens_one(rules: tuple[str, ...], verdict: str) -> None:
    assert decided(FETCH, *rules).verdict == verdict


def test_always_is_for_that_host_and_for_no_other() -> None:
    terms = decided(FETCH)
    assert terms.grant == "allow host pypi.org"
    assert decided(FETCH, terms.grant).verdict == "allow"
    for other in ("example.org", "files.pypi.org", "pypi.org:8443"):
        assert decided({**FETCH, "hosts": ["pypi.org", other]}, terms.grant).verdict == "ask"


def test_a_rule_to_ask_counts_also_where_something_wider_is_allowed() -> None:
    own = ("allow host *.example.org", "ask host cdn.example.org")
    assert decided({**FETCH, "hosts": ["cdn.example.org"]}, own=own).verdict == "ask"
    assert decided({**FETCH, "hosts": ["www.example.org"]}, own=own).verdict == "allow"


@pytest.mark.parametrize(
    "name", ["*.example.org", "*", "https://pypi.org/simple", "pypi.org/..", "pypi.org:http", "a\0b"]
)
def test_what_is_no_host_is_forbidden_and_says_why(name: str) -> None:
    terms = decided({**FETCH, "hosts": [name]}, "allow host *")
    assert terms.verdict == "deny"
    assert "The host `" in terms.rule


def test_more_hosts_than_anybody_reads_are_not_called_with() -> None:
    state, step = asking({**FETCH, "hosts": [f"{one}.example" for one in range(9)]})
    assert guarded().terms(state, step).effect == "pure", "it is not called"
    eight = decided({**FETCH, "hosts": [f"{one}.example" for one in range(8)]})
    assert all(f"`{one}.example`" in eight.question for one in range(8))
    assert len(eight.grant.splitlines()) == 8


def test_another_host_or_command_is_another_call() -> None:
    calls = [FETCH, {**FETCH, "hosts": ["pypi.org:443"]}, {**FETCH, "script": "python3 fetch.py x"}, {"script": "x"}]
    assert len({decided(one).digest for one in calls}) == 4


def test_unattended_it_is_not_done_and_the_agent_reads_why() -> None:
    state, step = asking(PIP)
    terms = decide_unattended(state, step, guarded().terms(state, step))
    assert terms.verdict == "deny"
    assert "reach `pypi.org` and `files.pythonhosted.org`, which no rule allows, and no person can" in terms.rule


@pytest.mark.parametrize(
    ("reach", "places"),
    [
        ((), ("host pypi.org", "host files.pythonhosted.org")),
        (("ours.example",), ("host ours.example", "host pypi.org", "host files.pythonhosted.org")),
        (None, ("command pip download jsonschema", "host pypi.org", "host files.pythonhosted.org")),
    ],
)
def test_its_hosts_are_places_where_something_could_go(reach: tuple[str, ...] | None, places: tuple[str, ...]) -> None:
    terms = guarded(reach=reach).terms(*asking(PIP))
    assert terms.outward == places
    assert {"web:pypi.org", "web:files.pythonhosted.org", "command:pip"} <= set(terms.origins)


def test_a_conversation_that_has_read_strangers_asks_although_a_rule_allows_the_host() -> None:
    house = reading(House.furnished(), ANN, origins=("web:evil.example", "command:baseline"))
    terms = guarded("allow host pypi.org").terms(*asking(FETCH, house))
    assert (terms.verdict, terms.release, terms.grant) == ("ask", "host pypi.org", "")
    assert terms.question == (
        "ann wants the network for a command. This conversation has read what others may have written (the web at "
        "evil.example, what `baseline` printed), and holds what is private (what `baseline` printed); this would go to "
        "`pypi.org`.\n  | python3 fetch.py\nIt does not say why."
    )
