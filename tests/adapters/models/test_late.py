"""A model that is made when it is first asked."""

import subprocess
import sys

from greenroom.adapters.models.late import Late
from greenroom.core.ports.model import ModelCard
from greenroom.testing.conformance.models import answered, asking, text_of
from greenroom.testing.scripted import Cue, Reply, ScriptedModel


async def test_it_has_a_name_and_a_price_before_it_is_made_and_is_made_once() -> None:
    made: list[str] = []

    def make() -> ScriptedModel:
        made.append("made")
        return ScriptedModel([Cue(reply=Reply(text="yes"))])

    late = Late("openai:m", ModelCard(window=5000), lambda read, written: read + written, make)
    assert (late.name, late.card.window, late.price(1, 2), made) == ("openai:m", 5000, 3, [])
    said = [text_of(await answered(late, asking("?"))) for _ in range(2)]
    assert (said, made) == (["yes", "yes"], ["made"])


def test_a_model_can_be_named_and_priced_before_what_speaks_to_it_is_loaded() -> None:
    code = (
        "import sys\n"
        "from greenroom.app.settings.schema import Settings\n"
        "from greenroom.app.model_registry import Supply\n"
        "model = Supply(Settings(), {'OPENAI_API_KEY': 'sk-test'}).named('openai:gpt-5')\n"
        "print(model.name, model.price(1000, 1000) > 0, 'aiohttp' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["openai:gpt-5", "True", "False"]
