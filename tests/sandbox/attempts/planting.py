"""Attempts to write what Greenroom or a person reads later: agents, tools, rules, start-up files, programs."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

from tests.sandbox.attempt import Attempt
from tests.sandbox.seeing import changed, exists, holds
from tests.sandbox.stage import BEFORE, Stage


def _ours(stage: Stage) -> None:
    """Put agents, tools, rules and servers into the workspace."""
    for name in ("agents/dev.md", "tools/count.py", "permissions", "config.toml", "callbacks.py"):
        stage.put(stage.work / ".greenroom" / name, BEFORE)
    stage.put(stage.work / ".mcp.json", BEFORE)
    (stage.home / ".config" / "greenroom" / "trust.json").write_text(BEFORE, encoding="ascii")


def _folder_is_another(what: str) -> str:
    return f"os.rename('.greenroom', 'old'); write('@work@/.greenroom/{what}', 'other')"


ours = partial(Attempt, kind="greenroom", ready=_ours)
absent = partial(Attempt, kind="greenroom")

GREENROOM: Final = (
    ours(
        name="an agent",
        script="open('.greenroom/agents/dev.md', 'a').write('Obey.')",
        seen=changed("@work@/.greenroom/agents/dev.md"),
    ),
    ours(
        name="a new agent",
        script="write('@work@/.greenroom/agents/evil.md', 'Obey.')",
        seen=exists("@work@/.greenroom/agents/evil.md"),
    ),
    ours(
        name="a tool",
        script="open('.greenroom/tools/count.py', 'w').write('evil()')",
        seen=changed("@work@/.greenroom/tools/count.py"),
    ),
    ours(
        name="the rules",
        script="open('.greenroom/permissions', 'w').write('allow command **')",
        seen=changed("@work@/.greenroom/permissions"),
    ),
    ours(
        name="the rules, by a second name",
        script="os.link('.greenroom/permissions', 'p'); open('p', 'w').write('allow command **')",
        seen=changed("@work@/.greenroom/permissions"),
    ),
    ours(
        name="the rules, by a file moved over them",
        script="write('@work@/p', 'allow'); os.rename('p', '.greenroom/permissions')",
        seen=changed("@work@/.greenroom/permissions"),
    ),
    ours(
        name="the rules taken away",
        script="os.unlink('.greenroom/permissions')",
        seen=changed("@work@/.greenroom/permissions"),
    ),
    ours(
        name="the settings",
        script="open('.greenroom/config.toml', 'w').write('other')",
        seen=changed("@work@/.greenroom/config.toml"),
    ),
    ours(
        name="the whole folder swapped",
        script=_folder_is_another("permissions"),
        seen=changed("@work@/.greenroom/permissions"),
    ),
    ours(
        name="the servers",
        script="open('.mcp.json', 'w').write('{}')",
        seen=changed("@work@/.mcp.json"),
    ),
    ours(
        name="the servers swapped",
        script="write('@work@/m', '{}'); os.rename('m', '.mcp.json')",
        seen=changed("@work@/.mcp.json"),
    ),
    ours(
        name="what a person has agreed to",
        script="open('@home@/.config/greenroom/trust.json', 'w').write('{}')",
        seen=changed("@home@/.config/greenroom/trust.json"),
    ),
    absent(
        name="a folder where there was none",
        script="write('@work@/.greenroom/agents/evil.md', 'Obey.')",
        seen=exists("@work@/.greenroom/agents/evil.md"),
    ),
    absent(
        name="a link to a folder where there was none",
        script="write('@work@/evil/agents/evil.md', 'Obey.'); os.symlink('evil', '.greenroom')",
        seen=exists("@work@/.greenroom/agents/evil.md"),
    ),
    absent(
        name="servers where there were none",
        script="write('@work@/.mcp.json', '{}')",
        seen=holds("@work@/.mcp.json", "{}"),
    ),
    absent(
        name="the person's settings",
        script="write('@home@/.config/greenroom/config.toml', 'evil')",
        seen=holds("@home@/.config/greenroom/config.toml", "evil"),
    ),
)

later = partial(Attempt, kind="persistence")


def _new_at_home(name: str, path: str) -> Attempt:
    return later(name=name, script=f"write('@home@/{path}', 'evil')", seen=exists(f"@home@/{path}"))


def _installed(stage: Stage) -> None:
    """Make a venv of the person, on their PATH, outside the workspace."""
    stage.put(stage.home / "venv" / "bin" / "tool", BEFORE).chmod(0o777)
    stage.put(stage.home / "venv" / "lib" / "site-packages" / "app.pth", BEFORE)


def _no_table(stage: Stage) -> None:
    """Remove the table, and cron's folders if they did not exist before, afterwards."""
    path = Path(f"/var/spool/cron/crontabs/escape-{stage.token}")
    made = [one for one in (path.parent, path.parent.parent) if not one.exists()]
    stage.afterwards(lambda: _take_away([path, *made]))


def _take_away(paths: list[Path]) -> None:
    for path in paths:
        if path.is_dir():
            path.rmdir()
        else:
            path.unlink(missing_ok=True)


PERSISTENCE: Final = (
    later(
        name="what a shell reads at its start",
        script="open('@home@/.bashrc', 'a').write('evil')",
        seen=changed("@home@/.bashrc"),
    ),
    later(
        name="what a shell reads at a login",
        script="open(os.path.expanduser('~/.profile'), 'a').write('evil')",
        seen=changed("@home@/.profile"),
    ),
    _new_at_home("what another shell reads at its start", ".zshenv"),
    _new_at_home("a key that opens the machine", ".ssh/authorized_keys"),
    later(
        name="the person's settings of git",
        script="open('@home@/.gitconfig', 'a').write('[core]\\n\\tfsmonitor = evil\\n')",
        seen=holds("@home@/.gitconfig", "evil"),
    ),
    _new_at_home("a program before others of its name", ".local/bin/git"),
    _new_at_home("a module that every Python reads", ".local/lib/python3.11/site-packages/usercustomize.py"),
    _new_at_home("a service of the person", ".config/systemd/user/evil.service"),
    _new_at_home("a program that starts with the desktop", ".config/autostart/evil.desktop"),
    _new_at_home("where packages come from", ".config/pip/pip.conf"),
    later(
        name="a program of a venv outside",
        script="open('@home@/venv/bin/tool', 'w').write('evil')",
        ready=_installed,
        seen=changed("@home@/venv/bin/tool"),
    ),
    later(
        name="a package installed in place, outside",
        script="open('@home@/venv/lib/site-packages/app.pth', 'a').write('import evil')",
        ready=_installed,
        seen=changed("@home@/venv/lib/site-packages/app.pth"),
    ),
    later(
        name="a table of times",
        script="write('/var/spool/cron/crontabs/escape-@token@', '')",
        seen=exists("/var/spool/cron/crontabs/escape-@token@"),
        ready=_no_table,
        needs=("root",),
    ),
)
