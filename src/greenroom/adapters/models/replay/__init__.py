"""Recordings of real responses: written while a model is used, and replayed without it."""

from greenroom.adapters.models.replay.model import Recorder as Recorder
from greenroom.adapters.models.replay.model import RecordingModel as RecordingModel
from greenroom.adapters.models.replay.model import ReplayModel as ReplayModel
from greenroom.adapters.models.replay.recording import ModelRecording as ModelRecording
from greenroom.adapters.models.replay.recording import find_secrets as find_secrets
