"""Feature purification: what neurons are made of, and what attacks on them look like.

Pure functions of tensors with replicate axes in front: weights (*R m d), dictionary M (*R d D),
w* (*R D), data x (*R n d). `Nets` holds networks as tensors; A = `coordinates`(W, M). Theorems,
lemmas and sections are those of the paper. `alive` neurons are those longer than a fifth of the
longest, a convention of ours.
"""

from .activity import ActiveNeurons as ActiveNeurons
from .activity import Rates as Rates
from .activity import activation_probability as activation_probability
from .activity import active as active
from .activity import coordinate_lipschitz as coordinate_lipschitz
from .activity import growth_rates as growth_rates
from .activity import leftover as leftover
from .activity import leftover_share as leftover_share
from .activity import lipschitz_bound as lipschitz_bound
from .certificate import certified_margin as certified_margin
from .certificate import fixed_bound as fixed_bound
from .certificate import slope_bound as slope_bound
from .correlations import Pairs as Pairs
from .correlations import Spread as Spread
from .correlations import alive as alive
from .correlations import move_ratio as move_ratio
from .correlations import pair_floor as pair_floor
from .correlations import pair_ratio as pair_ratio
from .correlations import pairs as pairs
from .correlations import spread as spread
from .correlations import start_ratio as start_ratio
from .correlations import theta as theta
from .correlations import turn_ratio as turn_ratio
from .correlations import unit as unit
from .curvature import certified as certified
from .curvature import curve_certified as curve_certified
from .curvature import curve_terms as curve_terms
from .dense_mixture import DenseMixture as DenseMixture
from .dense_mixture import change_energy as change_energy
from .dense_mixture import coordinates as coordinates
from .dense_mixture import covered as covered
from .dense_mixture import dense_over_top as dense_over_top
from .dense_mixture import idealised as idealised
from .dense_mixture import label_cosine as label_cosine
from .dense_mixture import label_direction as label_direction
from .dense_mixture import label_parts as label_parts
from .dense_mixture import mixture as mixture
from .dense_mixture import own_sets as own_sets
from .dense_mixture import top as top
from .dense_mixture import top_energy as top_energy
from .expected_tickets import Count as Count
from .expected_tickets import MainText as MainText
from .expected_tickets import expected_main_text as expected_main_text
from .expected_tickets import expected_potential as expected_potential
from .expected_tickets import expected_sure as expected_sure
from .expected_tickets import main_text as main_text
from .growth import Growth as Growth
from .growth import GrowthLog as GrowthLog
from .growth import growth_identity as growth_identity
from .growth import loss_slope as loss_slope
from .linearity import FGMArgument as FGMArgument
from .linearity import fgm_argument as fgm_argument
from .linearity import linearity_gap as linearity_gap
from .networks import NetMargin as NetMargin
from .networks import Nets as Nets
from .networks import margin_of as margin_of
from .ntk_tensors import claimed_norm as claimed_norm
from .ntk_tensors import symmetric_tensor_norm as symmetric_tensor_norm
from .ntk_tensors import tensor_norm as tensor_norm
from .perturbations import energy_count as energy_count
from .perturbations import participation as participation
from .perturbations import universal as universal
from .tickets import TicketRules as TicketRules
from .tickets import ordinary as ordinary
from .tickets import ordinary_plus as ordinary_plus
from .tickets import ordinary_twice_plus as ordinary_twice_plus
from .tickets import potential as potential
from .tickets import potential_plus as potential_plus
from .tickets import share_within as share_within
from .tickets import sure as sure
from .tickets import sure_plus as sure_plus
from .tickets import tickets_kept as tickets_kept
from .transfers import Transfers as Transfers
from .transfers import transfer_matrix as transfer_matrix
from .worst_case import Survival as Survival
from .worst_case import survival as survival
