"""Examples that two users share: the interface of data models, published sets, own arrays."""

from . import arrays as arrays
from . import cifar10 as cifar10
from . import cifar100 as cifar100
from . import mnist as mnist
from .arrays import Arrays as Arrays
from .arrays import from_arrays as from_arrays
from .augment import AUGMENTATIONS as AUGMENTATIONS
from .augment import Augmentation as Augmentation
from .augment import Augmentations as Augmentations
from .augment import Crop as Crop
from .augment import Cutout as Cutout
from .augment import Flip as Flip
from .augment import augmentation as augmentation
from .base import DataModel as DataModel
from .directory import SETS as SETS
from .directory import data_root as data_root
from .directory import fetch as fetch
from .images import ImageFolder as ImageFolder
from .loaders import batches as batches
from .recorded import cached as cached
from .recorded import recorded as recorded
from .registry import DATA as DATA
from .resolve import resolve as resolve
from .splits import Parts as Parts
from .splits import check_every_class as check_every_class
from .splits import split as split
