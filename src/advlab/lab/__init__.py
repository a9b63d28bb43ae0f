"""Many runs, resumable: cases in, whole runs on disk, one tidy table out."""

from .case import About as About
from .case import Case as Case
from .case import Computed as Computed
from .case import Scale as Scale
from .case import blocks as blocks
from .experiment import Experiment as Experiment
from .experiment import load as load
from .experiment import run as run
from .shared import remembering as remembering
from .shared import shared as shared
from .store import Store as Store
from .store import Stored as Stored
from .sweep import Swept as Swept
from .sweep import sweep as sweep
