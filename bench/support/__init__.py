"""What claims share: clusters of real processes, clients, scripted workloads, attackers and measurements."""
