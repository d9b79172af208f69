"""Folders with a netlist, its data and a recording, which run without pcsim."""
