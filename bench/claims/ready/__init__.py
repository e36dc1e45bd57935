"""Claims about operation by a team: lost services, identities, roles and limits."""
