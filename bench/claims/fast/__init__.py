"""Claims about speed, each against the bare engine or a fixed count."""
