"""The worker's side of running commands: clients of the guardian process, shells, and the capture of output."""
