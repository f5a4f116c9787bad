"""What every fine-tuning has in common: the Trainer and its checkpoints, the run's folder, the search over a grid."""
