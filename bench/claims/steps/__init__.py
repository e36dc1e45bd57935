"""Claims about queues of steps and what belongs to them: feeds, questions, children, outputs and batches."""
