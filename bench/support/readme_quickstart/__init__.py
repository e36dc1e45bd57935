"""Follows the README's first section step by step on a machine on which nothing is installed yet."""
