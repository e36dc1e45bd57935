"""Interfaces between the core and its adapters, by the package that uses them."""
