"""Public names: every Greenroom type in a signature of one is public too."""

import ast
import inspect
import subprocess
import sys
from collections.abc import Iterator
from typing import ParamSpec, TypeVar, get_args

import greenroom
from greenroom import Agent, ModelFault
from tools.reference import HANDED_OUT

HEAVY = (
    *("aiohttp", "genai_prices", "jinja2", "jsonschema_rs", "mcp", "playwright", "prompt_toolkit", "pydantic"),
    *("pydantic_ai", "pypdf", "trafilatura", "typer", "yaml"),
)


def find_annotations(name: str, value: object) -> Iterator[tuple[str, str]]:
    """Yield the module and the text of each annotation in the signatures of a function, or of a class's methods."""
    if inspect.isfunction(value):
        yield from ((value.__module__, text) for text in inspect.unwrap(value).__annotations__.values())
    if not inspect.isclass(value):
        return
    for base in value.__mro__:
        if not base.__module__.startswith("greenroom"):
            continue
        for key, member in vars(base).items():
            if not key.startswith("_") or (key == "__init__" and name not in HANDED_OUT):
                yield from find_annotations(key, getattr(member, "__func__", member))
        if hasattr(base, "__struct_fields__") or hasattr(base, "__dataclass_fields__"):
            fields = vars(base).get("__annotations__", {})
            yield from ((base.__module__, text) for key, text in fields.items() if not key.startswith("_"))


def find_types(name: str, value: object) -> Iterator[str]:
    """Yield the names of Greenroom's own types in those annotations: classes, new types and aliases."""
    for module, text in find_annotations(name, value):
        for node in ast.walk(ast.parse(str(text), mode="eval")):
            found = vars(sys.modules[module]).get(node.id) if isinstance(node, ast.Name) else None
            is_variable = isinstance(found, (TypeVar, ParamSpec))
            is_own = str(getattr(found, "__module__", "")).startswith("greenroom") or bool(get_args(found))
            if isinstance(node, ast.Name) and is_own and not is_variable:
                yield node.id


def test_every_type_in_a_public_signature_can_be_imported() -> None:
    missing = {
        f"{found} (in {name})"
        for name in greenroom.__all__
        for found in find_types(name, getattr(greenroom, name))
        if found not in greenroom.__all__
    }
    assert not missing, f"add to greenroom/__init__.py: {sorted(missing)}"


def test_the_walk_finds_types() -> None:
    def speak(agent: "Agent[str]", names: "list[str]") -> "ModelFault | None": ...

    assert {"Agent", "ModelFault"} <= set(find_types("speak", speak))
    assert "ToolList" in set(find_types("Agent", Agent))


def test_importing_an_agent_loads_no_heavy_module() -> None:
    program = "import sys\nfrom greenroom import Agent\nprint(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert not set(HEAVY).intersection(loaded.stdout.split())
