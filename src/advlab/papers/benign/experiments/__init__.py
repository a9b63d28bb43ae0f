"""One file per figure, table or question of the benign overfitting paper."""
