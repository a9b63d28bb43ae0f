"""What only the generalization paper measures: how lazy a network is (`lazy_terms`)."""
