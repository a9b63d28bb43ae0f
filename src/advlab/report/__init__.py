"""Tables in, one HTML page out. This room never imports torch, so a report opens at once."""

from .decide import above as above
from .decide import below as below
from .decide import decreasing as decreasing
from .decide import every as every
from .decide import increasing as increasing
from .decide import sample as sample
from .decide import trend as trend
from .decide import undecide as undecide
from .decide import within as within
from .result import Failure as Failure
from .result import Result as Result
from .verdict import Outcome as Outcome
from .verdict import Verdict as Verdict
