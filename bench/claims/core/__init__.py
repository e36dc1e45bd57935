"""Claims about the durable core: crashes, streams, cost per turn, isolation of organisations."""
