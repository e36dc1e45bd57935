"""The Docker labels of Footplate's containers. They record the owner process, the worker, the session and the turn."""

from typing import Final

OWNER: Final = "footplate.holder"
"""The owner: the turn's guardian, or the worker that prepares an image (see `container_owner`)."""
WORKER: Final = "footplate.worker"
"""The name under which the database stores the worker's lease."""
ORGANISATION: Final = "footplate.organisation"
SESSION: Final = "footplate.session"
TURN: Final = "footplate.turn"
