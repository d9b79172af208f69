"""The circuit as a netlist: emitted from the equations of a plan, run by ngspice."""
