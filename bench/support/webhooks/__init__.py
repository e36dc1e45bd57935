"""A server that receives webhooks, and addresses at which none may arrive."""
