"""Studies: one module per question, each run as `pcsim experiment NAME`."""
