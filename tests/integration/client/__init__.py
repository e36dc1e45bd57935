"""Tests of the client against a server that responds, fails and disconnects as scripted."""
