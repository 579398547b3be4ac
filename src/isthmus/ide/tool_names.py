"""The names of the tools of spec 1, for those who must know them without speaking it."""

OPEN_DIFF = "openDiff"
CLOSE_DIFF = "closeDiff"
