"""Claims about rules, approvals, hooks and the audit trail."""
