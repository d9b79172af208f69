"""A configuration becomes a stored result: data, replicas, loops, checkpoints, records."""
