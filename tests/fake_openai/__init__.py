"""A fake OpenAI-compatible server for tests and benchmarks: good answers, and about ninety faults."""

from tests.fake_openai.answers import Answer as Answer
from tests.fake_openai.answers import Call as Call
from tests.fake_openai.faults import FAULTS as FAULTS
from tests.fake_openai.faults import Fault as Fault
from tests.fake_openai.faults import fault as fault
from tests.fake_openai.process import run_in_process as run_in_process
from tests.fake_openai.scripts import Script as Script
from tests.fake_openai.seen import Seen as Seen
from tests.fake_openai.server import FakeOpenAI as FakeOpenAI
