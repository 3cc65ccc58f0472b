"""Recordings of real answers: written while a model is asked, and played back without it."""

from greenroom.adapters.models.replay.cassette import Cassette as Cassette
from greenroom.adapters.models.replay.cassette import secrets_in as secrets_in
from greenroom.adapters.models.replay.model import Recorder as Recorder
from greenroom.adapters.models.replay.model import RecordingModel as RecordingModel
from greenroom.adapters.models.replay.model import ReplayModel as ReplayModel
