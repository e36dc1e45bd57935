"""Kills processes of a cell, and checks its sessions afterwards, for core-2 and core-3."""
