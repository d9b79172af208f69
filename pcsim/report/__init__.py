"""Reports: stored results as one HTML file that stands alone, and as figures for a paper.

Reports only read stores. Which figures appear depends on the variables and axes that are there.
"""

from pcsim.report.write import report

__all__ = ["report"]
