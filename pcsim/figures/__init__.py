"""Figures from stored numbers: no simulation, no configuration."""
