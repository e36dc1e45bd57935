"""Claims about queues of steps, feeds, questions, children, outputs and batches."""
