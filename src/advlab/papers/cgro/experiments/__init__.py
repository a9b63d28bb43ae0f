"""One file per figure, table or question of the CGRO paper."""
