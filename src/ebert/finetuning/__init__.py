"""What all fine-tuning shares: the Trainer and its checkpoints, the run's folder, the search over a grid."""
