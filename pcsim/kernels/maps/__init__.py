"""One file for each map: its kernel, and its plain form. `pcsim.kernels.map_kernel` finds them."""
