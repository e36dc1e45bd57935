"""Stores how people sign in: browser sessions, one-time codes, and failed attempts."""
