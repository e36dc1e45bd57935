"""Runs each kind of hook: command, HTTP and Python. A hook that fails raises no exception; its output describes the
failure.
"""
