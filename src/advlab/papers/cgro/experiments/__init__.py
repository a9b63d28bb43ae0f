"""One file per claim of the CGRO paper that an experiment decides."""
