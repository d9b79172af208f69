"""Pictures changed by kornia: training samples augmented, test samples corrupted.

kornia is optional (`pip install 'pcsim[vision]'`) and loaded when the first picture is changed.
"""
