"""A fake OpenAI-compatible server for tests and benchmarks: good answers, and some ninety ways to do it wrong."""

from greenroom.testing.fake_openai.answers import Answer as Answer
from greenroom.testing.fake_openai.answers import Call as Call
from greenroom.testing.fake_openai.faults import FAULTS as FAULTS
from greenroom.testing.fake_openai.faults import Fault as Fault
from greenroom.testing.fake_openai.faults import fault as fault
from greenroom.testing.fake_openai.process import run_in_process as run_in_process
from greenroom.testing.fake_openai.scripts import Script as Script
from greenroom.testing.fake_openai.seen import Seen as Seen
from greenroom.testing.fake_openai.server import FakeOpenAI as FakeOpenAI
