"""Request handling: parsing, validation, uploads and idempotent changes."""
