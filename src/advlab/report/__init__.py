"""Tables in, one HTML page out. This room never imports torch, so a report opens at once."""

from .claims import Claims as Claims
from .result import Failure as Failure
from .result import Maker as Maker
from .result import Result as Result
from .rules import put_outside as put_outside
from .rules import sample as sample
from .rules import undecide as undecide
from .verdict import Assumption as Assumption
from .verdict import Claim as Claim
from .verdict import Kind as Kind
from .verdict import Outcome as Outcome
from .verdict import Scope as Scope
from .verdict import Verdict as Verdict
from .verdict import empirical as empirical
from .verdict import identity as identity
from .verdict import ours as ours
from .verdict import theorem as theorem
