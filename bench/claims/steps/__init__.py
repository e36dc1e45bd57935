"""Claims about queues of steps, and about everything that follows them: feeds, questions, children, outputs, batches."""
