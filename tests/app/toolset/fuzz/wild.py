"""What nobody sane would write: paths, command lines, hosts, rules and arguments, from one seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import TypeVar, cast

from greenroom.abilities.permission.rulebook import LAYERS, Layer
from greenroom.abilities.permission.rules import BadRule, parse
from greenroom.core.base.records import Data

T = TypeVar("T")

PATHS = (
    *("a.txt", "src/x.py", "src/deep/y.py", "new/z", ".", "", "..", "../out.txt", "src/../../out.txt", "/etc/passwd"),
    *("/", "//etc//shadow", "link/passwd", "inner/x.py", "dangling", "loop/x", ".git/config", ".GIT/hooks/pre-push"),
    *("sub/.git/config", ".greenroom/agents/x.md", "git~1/config", ".g\u200cit/config", ".git /config", ".git./x"),
    *(".env", "src/.env.local", "keys/id_rsa", "a\0b", "a\nb", "caf\u00e9", "cafe\u0301", "\u202etxt.exe", "~/.ssh/x"),
    *("$HOME/x", "a b", "*.py", "[a-z]", "x" * 300, "y/" * 60, "%2e%2e/out.txt", "..\\out.txt", "\uff0e\uff0e/out.txt"),
)
PROGRAMS = (
    *("ls", "ls -la src", "cat a.txt", "cat .env", "git status", "git push origin main", "git -c a=b log", "npm test"),
    *("rm -rf /", "rm a.txt", "sudo ls", "env", "curl http://example.org", "python3 -c 'print(1)'", "npm install x"),
    *(
        "find . -delete",
        "find . -name x",
        "tee /etc/hosts",
        "echo hi",
        "make",
        "true",
        ":",
        "",
        "kill -9 1",
        "grep x a",
    ),
)
AROUND = (
    *("{0}; {1}", "{0} && {1}", "{0} || {1}", "{0} | {1}", "{0} & {1}", "{0}\n{1}", "({0})", "{{ {0}; }}", "! {0}"),
    *("$({0})", "`{0}`", 'echo "$({0})"', "echo '{0}'", "bash -c '{0}'", 'sh -c "{0}"', "eval {0}", "X=1 {0}"),
    *("PATH=. {0}", "LD_PRELOAD=x {0}", "{0} > out.txt", "{0} >> /etc/x", "{0} < a.txt", "{0} 2>&1", "{0} >& ../o"),
    *("cat <<E\n{0}\nE", "cat <<'E'\n{0}\nE\n{1}", "cat <<-E\n\t{0}\n\tE", "if {0}; then {1}; fi", "x() {{ {0}; }}; x"),
    *("for i in 1; do {0}; done", "xargs {0}", "{0} # {1}", "\\{0}", "'{0}'", '"{0}"', "time {0}", "nohup {0} &"),
    *("[[ -f x ]] && {0}", "echo $(( 1 + 1 )); {0}", "${{x:-{0}}}", "<({0})", "{0} \\\n{1}", "timeout 5 {0}", "{0};"),
    *(
        "command {0}",
        "exec {0}",
        "busybox {0}",
        "$'{0}'",
        "{0} ''",
        "l\\s; {0}",
        "{0}\u00a0{1}",
        "{0}\r{1}",
        "{0}\x00{1}",
    ),
)
HOSTS = (
    *("example.org", "EXAMPLE.org", "example.org.", "example.org:443", "example.org:8080", "sub.example.org", "127.1"),
    *("0x7f.0.0.1", "2130706433", "0177.0.0.1", "127.0.0.1", "[::1]", "[::ffff:127.0.0.1]:80", "[fe80::1%eth0]", ""),
    *("user:pass@example.org", "example.org/path", "http://example.org", "exa\u200bmple.org", "ex\u0430mple.org", "*"),
    *("xn--exmple-cua.org", "example.org:0", "example.org:99999", "localhost", "a..b", "-a.org", "a" * 300, "ＥＸ.org"),
)
WORDS = ("x", "", "0", "true", "null", "a\x1b[31mb", "\u202e", "日本", "a" * 2_000, "'; rm -rf /; '", "{}", "[secret]")
RULES = {
    "command": ("git", "git push", "ls", "npm test", "rm", "sudo", "env", "curl", "cat", "python3", "find", "echo hi"),
    "line": ("ls -la src", "git status", "npm test", "echo hi", "rm a.txt"),
    "path": (
        "**",
        "src/**",
        "*.py",
        "**/.env",
        "/etc/**",
        "a.txt",
        "src/deep/** write",
        "** read",
        "~/**",
        "new/* write",
    ),
    "host": ("example.org", "*.example.org", "*", "127.0.0.1", "example.org:8080", "[::1]"),
    "tool": ("mcp__*", "mcp__notes__write", "fetch", "custom", "patch", "read_code", "notifies", "asks", "ask_user"),
}
LEVELS = ("allow", "allow", "notify", "notify", "ask", "deny")


class Wild:
    """All of it, the same again from the same seed."""

    def __init__(self, seed: str) -> None:
        self.random = Random(seed)

    def one_of(self, some: Sequence[T]) -> T:
        """Any of them."""
        return self.random.choice(some)

    def chance(self, of: float) -> bool:
        """So often."""
        return self.random.random() < of

    def path(self) -> str:
        """A path, sometimes made of two, sometimes in another case."""
        made = self.one_of(PATHS)
        if self.chance(0.2):
            made = self.one_of(("{0}/{1}", "{0}/../{1}", "./{0}", "{0}/", "{0}//{1}")).format(made, self.one_of(PATHS))
        return made.swapcase() if self.chance(0.1) else made

    def command(self, depth: int = 0) -> str:
        """A command line, wrapped into others."""
        if depth > 3 or self.chance(0.4):
            return self.one_of(PROGRAMS)
        return self.one_of(AROUND).format(self.command(depth + 1), self.command(depth + 1))

    def host(self) -> str:
        """Something like a host."""
        return self.one_of(HOSTS)

    def rule(self) -> str:
        """A rule that can be read."""
        while True:
            kind = self.one_of(tuple(RULES))
            said = f"{self.one_of(LEVELS)} {kind} {self.one_of(RULES[kind])}"
            try:
                return str(parse(said))
            except BadRule:
                continue

    def rules(self) -> dict[Layer, list[str]]:
        """Rules of all layers."""
        return {layer: [self.rule() for _ in range(self.random.randrange(8))] for layer in LAYERS}

    def arguments(self, schema: Data) -> dict[str, object]:
        """Arguments for a tool: mostly of the right shape, never of the right mind."""
        made = self._object(schema)
        if self.chance(0.02):
            made[self.one_of(("extra", "file", "script", "../x"))] = self.one_of((1, None, "x", [], {}))
        if made and self.chance(0.02):
            made[self.one_of(tuple(made))] = self.one_of((None, 5, -1, "", [], {"a": 1}, [[]], 1.5))
        return made

    def _object(self, schema: Data) -> dict[str, object]:
        properties = cast("Mapping[str, Data]", schema.get("properties", {}))
        required = cast("Sequence[str]", schema.get("required", ()))
        return {
            name: self._value(name, kind) for name, kind in properties.items() if name in required or self.chance(0.3)
        }

    def _value(self, name: str, schema: Data) -> object:
        if "enum" in schema:
            return self.one_of(cast("Sequence[object]", schema["enum"]))
        makers: Mapping[object, Callable[[], object]] = {
            "object": lambda: self._object(schema),
            "array": lambda: [
                self._value(name, cast("Data", schema["items"])) for _ in range(self.random.choice((1, 1, 2, 5)))
            ],
            "integer": lambda: self.random.choice((1, 2, 50)),
            "boolean": lambda: self.chance(0.5),
            "string": lambda: self._text(name),
        }
        return makers.get(schema.get("type"), lambda: self._text(name))()

    def _text(self, name: str) -> str:
        if name in ("file", "files", "path", "folder", "cwd", "under"):
            return self.path()
        if name in ("script", "command"):
            return self.command()
        return self.host() if name in ("host", "url") else self.one_of(WORDS)
