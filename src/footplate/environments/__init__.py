"""Environments that run a turn's commands (unsandboxed, sandbox, docker), and end all its processes with the turn."""
