"""What every benchmark shares: rounds that alternate, agreement, ratios, the record of a run, inputs."""
