"""Database access for API resources: projects, files, policies, API keys, the audit trail and usage."""
