"""What a trained model shows."""

from .robustness import Evaluation as Evaluation
from .robustness import evaluate as evaluate
