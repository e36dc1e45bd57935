"""The worker's side of running commands: the guardian, the spawner, shells and their output."""
