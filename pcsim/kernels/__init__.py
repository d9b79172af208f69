"""The equations as in-place torch operations on (replica, sample, unit) states."""
