"""A small repository whose work a scripted team does, and the replies of its members."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from greenroom.testing.scripted import Cue, ScriptedCall, ScriptedModel
from tests.e2e.jobs import ALONE, committed

REQUEST = "add tax and discount, with tests and docs"
DESIGN = {
    "architecture_overview": "two modules",
    "components": [
        {"name": "tax", "purpose": "tax", "writes": ["shop/tax.py"]},
        {"name": "discount", "purpose": "discount", "writes": ["shop/discount.py"]},
    ],
}
TAX = "def tax(x):\n    return x * 0.2\n"
DISCOUNT = "def discount(x):\n    return x * 0.9\n"
TESTS = """from shop.discount import discount
from shop.tax import tax


def test_tax():
    assert tax(10) == 2


def test_discount():
    assert discount(10) == 9
"""


def build_shop(folder: Path) -> Path:
    """Make the repository."""
    files = {
        "shop/__init__.py": "",
        "shop/cart.py": "def total(items):\n    return sum(items)\n",
        "tests/test_cart.py": "from shop.cart import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n",
        "README.md": "# Shop\n",
        "conftest.py": "",
        "pytest.ini": f"[pytest]\naddopts = {ALONE}\n",
        ".gitignore": "secret.txt\n__pycache__/\n",
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    committed(folder)
    (folder / "secret.txt").write_text("hidden\n")
    return folder


def call(name: str, **arguments: object) -> ScriptedCall:
    return ScriptedCall(name=name, arguments=arguments)


def done(summary: str, **more: object) -> ScriptedCall:
    return call("answer", status="done", summary=summary, **more)


def write(agent: str, file: str, content: str, summary: str) -> list[Cue]:
    """A specialist that writes one file."""
    first = call("rewrite", file=file, content=content)
    return [Cue(agent=agent, turn=1, reply=first), Cue(agent=agent, reply=done(summary))]


def team_cues() -> list[Cue]:
    """The replies of a team whose code is split by the design."""
    return [
        Cue(agent="architect-1", reply=done("designed", handoff=DESIGN)),
        *write("code-writer-1", "shop/tax.py", TAX, "tax"),
        *write("code-writer-2", "shop/discount.py", DISCOUNT, "discount"),
        *write("test-writer-1", "tests/test_new.py", TESTS, "tests"),
        *write("documentation-1", "docs/tax.md", "# Tax\n", "docs"),
        Cue(agent="review-1", reply=done("good")),
    ]


class FakeSession:
    """Scripted models in place of those of the settings, for `ModelSession`."""

    def __init__(self, cues: Iterable[Cue]) -> None:
        self.model = ScriptedModel(cues)

    def get_model(self, _: str) -> ScriptedModel:
        return self.model

    def resolve_alias(self, name: str) -> str:
        return name or "scripted:model"
