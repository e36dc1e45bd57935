"""What a container of ours says of itself, so that whoever finds it knows whose it is."""

from typing import Final

HOLDER: Final = "footplate.holder"
"""The turn's guardian, or the worker that prepares an image (see `holders`)."""
WORKER: Final = "footplate.worker"
"""By this name the worker's lease is in the database."""
ORGANISATION: Final = "footplate.organisation"
SESSION: Final = "footplate.session"
TURN: Final = "footplate.turn"
