"""Environments run the commands of a turn in one of three backends: unsandboxed, sandbox (bubblewrap) or docker.

When a turn ends, its environment kills all of the turn's processes.
"""
