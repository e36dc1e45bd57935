"""Claims about operation by a team: lost services, long sessions, identities, roles and limits."""
