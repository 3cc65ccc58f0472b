"""All attempts, as tables by class."""

from __future__ import annotations

from typing import Final

from tests.sandbox.attempt import Attempt
from tests.sandbox.attempts.afterwards import AFTERWARDS
from tests.sandbox.attempts.disguised import DISCLOSED, DISGUISED, DOORS
from tests.sandbox.attempts.git import GIT
from tests.sandbox.attempts.kernel import KERNEL
from tests.sandbox.attempts.network import NETWORK
from tests.sandbox.attempts.outliving import OUTLIVING
from tests.sandbox.attempts.planting import GREENROOM, PERSISTENCE
from tests.sandbox.attempts.processes import PROCESSES
from tests.sandbox.attempts.reads import ENVIRONMENT, READS
from tests.sandbox.attempts.resources import RESOURCES
from tests.sandbox.attempts.writes import WRITES

ATTEMPTS: Final[tuple[Attempt, ...]] = (
    *WRITES,
    *READS,
    *DISCLOSED,
    *ENVIRONMENT,
    *PROCESSES,
    *NETWORK,
    *DOORS,
    *KERNEL,
    *GIT,
    *DISGUISED,
    *GREENROOM,
    *PERSISTENCE,
    *RESOURCES,
    *OUTLIVING,
    *AFTERWARDS,
)
