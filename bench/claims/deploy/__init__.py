"""Claims about running a server for years: connections, packaging, upgrades, backup and limits."""
