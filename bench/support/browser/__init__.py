"""Drives Chromium, for claims about what web pages see."""
