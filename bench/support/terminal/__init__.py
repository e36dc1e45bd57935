"""Tests the command line on terminals, in pipes, after SIGKILL, and with shell completion."""
