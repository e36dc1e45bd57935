"""Kills a worker's host in the middle of turns, deletes its disk, and checks that another host continues."""
