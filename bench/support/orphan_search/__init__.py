"""Searches for processes and resources that survive a turn, after commands that try everything to stay alive."""
