"""Claims about steps: queues, feeds, questions, children, outputs and batches."""
