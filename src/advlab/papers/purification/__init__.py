"""Feature purification: how adversarial training performs robust deep learning (Allen-Zhu, Li)."""
