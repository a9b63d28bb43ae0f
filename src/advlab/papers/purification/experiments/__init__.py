"""One file per figure, table or question of the feature purification paper."""
