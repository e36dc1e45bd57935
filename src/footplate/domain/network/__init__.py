"""Rules for network access: addresses, hosts, name lookups and incoming requests."""
