"""API resources in the database: projects, files, policies, API keys, audit trail, usage."""
