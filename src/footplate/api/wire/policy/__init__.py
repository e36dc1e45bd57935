"""Wire models of permission rules, hooks, approvals and the audit trail."""
