"""Walls as they are told to a guard: the same as the port says, in a form that goes through a socket."""

from __future__ import annotations

import base64

from greenroom.adapters.commands.warden.bridge import Bridge
from greenroom.adapters.commands.warden.enclosure import Walls
from greenroom.adapters.commands.warden.landlock import Rules
from greenroom.adapters.commands.warden.stage import Placed
from greenroom.core.ports import sandbox as port
from greenroom.core.ports.sandbox import Enclosed, Ruleset


def told(enclosed: Enclosed) -> Walls:
    """All that its process is to do before it becomes the command."""
    return Walls(
        uid=enclosed.uid,
        gid=enclosed.gid,
        cgroups=list(enclosed.cgroups),
        rlimits=dict(enclosed.rlimits),
        tasks=enclosed.tasks,
        stage=enclosed.stage,
        staged=[Placed(source=one.source, place=one.place, owned=one.owned) for one in enclosed.staged],
        contents={str(number): _text(content) for number, content in enclosed.contents.items()},
        landlock=_rules(enclosed.landlock),
        seccomp=_text(enclosed.seccomp),
        outer=enclosed.outer,
        verdict=enclosed.verdict,
        bridge=_bridge(enclosed.bridge),
    )


def _rules(ruleset: Ruleset | None) -> Rules | None:
    if ruleset is None:
        return None
    return Rules(files=ruleset.files, network=ruleset.network, scopes=ruleset.scopes, rules=list(ruleset.rules))


def _bridge(bridge: port.Bridge | None) -> Bridge | None:
    if bridge is None:
        return None
    return Bridge(port=bridge.port, socket=bridge.socket, told=bridge.told, gate=bridge.gate)


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")
