"""How robust is this model: a bracket from below by attack and from above by certificate."""

from .attack import attack as attack
from .compare import Comparison as Comparison
from .compare import compare as compare
from .compare import compare_states as compare_states
from .curve import CurvePoint as CurvePoint
from .curve import RobustnessCurve as RobustnessCurve
from .curve import curve as curve
from .evaluate import evaluate as evaluate
from .evaluation import CheckWarning as CheckWarning
from .evaluation import Curve as Curve
from .evaluation import Evaluation as Evaluation
from .evaluation import Example as Example
from .evaluation import interval as interval
from .outcomes import Counterexample as Counterexample
from .output import Output as Output
from .suites import SUITES as SUITES
from .suites import Plan as Plan
from .suites import plan as plan
