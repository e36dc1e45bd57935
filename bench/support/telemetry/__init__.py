"""The parts of `door-7`: a collector of its own, what it received, and the two ways to count."""
