"""Training: tasks, the loop, checkpoints, the protocol of a run."""
