"""Models of one's own: found in their folder, and made by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from greenroom.adapters.models.platforms import BasePlatform, PlatformRegistry
from greenroom.core.base.errors import WorldFault
from greenroom.testing.scripted import ScriptedModel

IMPORTS = "from greenroom.adapters.models.platforms import BasePlatform\n"
MODEL = "    def model_named(self, name):\n        return name.upper()\n"
OWN = f"""{IMPORTS}
class TeaPlatform(BasePlatform):
    platform = "tea"
{MODEL}
class _Hidden(BasePlatform):
    pass

class NotOne:
    pass
"""
LACKING = f"""{IMPORTS}
class HalfPlatform(BasePlatform):
    pass

class LikePlatform:
{MODEL}
"""


def folder(tmp_path: Path, **files: str) -> Path:
    made = tmp_path / "models"
    made.mkdir()
    for name, text in files.items():
        (made / f"{name}.py").write_text(text)
    return made


@pytest.mark.req("AG-125", "AG-126", "AG-189")
def test_a_platform_of_ones_own_is_found_in_its_folder(tmp_path: Path) -> None:
    registry = PlatformRegistry()
    assert registry.load_platform_from_dir(folder(tmp_path, tea=OWN, _draft="1/0")) == ("tea",)
    assert registry.names() == ("tea",)
    assert str(registry.make_model("tea", "oolong")) == "OOLONG"


@pytest.mark.req("AG-130")
def test_a_class_that_lacks_a_method_is_not_registered(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    registry = PlatformRegistry()
    assert registry.load_platform_from_dir(folder(tmp_path, half=LACKING)) == ()
    assert registry.names() == ()
    assert f"{tmp_path / 'models' / 'half.py'}: HalfPlatform lacks model_named. Add it." in caplog.text
    assert "LikePlatform is not a subclass of BasePlatform" in caplog.text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def (", "SyntaxError"),
        ("import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("1 / 0", "ZeroDivisionError"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("x = '\udcff'", "SyntaxError"),
    ],
)
def test_a_file_that_does_not_import_is_reported_and_the_others_load(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str, words: str
) -> None:
    made = folder(tmp_path, tea=OWN)
    (made / "bad.py").write_bytes(text.encode("utf-8", "surrogateescape"))
    assert PlatformRegistry().load_platform_from_dir(made) == ("tea",)
    assert f"{made / 'bad.py'} cannot be loaded: {words}" in caplog.text


def test_a_platform_without_a_name_is_called_like_its_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    start = f"{IMPORTS}class P(BasePlatform):\n{MODEL}"
    texts = {
        "nameless": start,
        "loud": f"{start}    platform = 'loudest'\n",
        "wrong": f"{start}    platform = 'a:b'\n",
    }
    registry = PlatformRegistry()
    assert registry.load_platform_from_dir(folder(tmp_path, **texts)) == ("loudest", "nameless")
    assert "P has the name 'a:b'" in caplog.text


def test_a_platform_that_cannot_make_a_model_says_why() -> None:
    class Mine(BasePlatform):
        def model_named(self, name: str) -> ScriptedModel:
            if name == "none":
                raise WorldFault("No model is set.")
            raise RuntimeError("no water")

    registry = PlatformRegistry()
    assert registry.register_platform("mine", Mine)
    with pytest.raises(WorldFault, match=r"The platform 'mine' cannot make the model 'x': RuntimeError: no water\."):
        registry.make_model("mine", "x")
    with pytest.raises(WorldFault, match="No model is set"):
        registry.make_model("mine", "none")
