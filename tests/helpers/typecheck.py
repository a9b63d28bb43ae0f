"""How tests check shapes and types: like beartype, but an int will do for a float."""

from beartype import BeartypeConf, beartype

checked = beartype(conf=BeartypeConf(is_pep484_tower=True))
