"""The parts of `box-3`: a key that must not be found, all the places where it could be, and how it could look there."""
