"""What the CGRO paper proves, made computable: Theorems 4.1, 5.2, 5.3 and E.1 and their lemmas.

Theorem 4.1: `parameterization` (what it asks for), `times` (T_0, T_1, the race), `fresh_noise` (its
test errors), `growth` (its lemmas along a run), `recursion` (one step), `tensor_power` (Lemmas A.1
to A.3). Theorem 5.2: `explicit_network`, `feasibility`, `products`. Theorem 5.3: `lower_bound`,
`region_count` (Proposition D.5).
Theorem E.1: `flatness`, its rate: `flatness_terms`.
"""

from .explicit_network import CGROPlan as CGROPlan
from .explicit_network import cgro_network as cgro_network
from .explicit_network import cgro_plan as cgro_plan
from .feasibility import least_depth as least_depth
from .fresh_noise import chaos_tail as chaos_tail
from .fresh_noise import chebyshev_error as chebyshev_error
from .fresh_noise import error_from_noise as error_from_noise
from .fresh_noise import noise_variance as noise_variance
from .fresh_noise import subgaussian_parameter as subgaussian_parameter
from .growth import attack_budget as attack_budget
from .growth import lojasiewicz_ratio as lojasiewicz_ratio
from .growth import loss_decay as loss_decay
from .growth import noise_remainder as noise_remainder
from .growth import noise_remainder_scale as noise_remainder_scale
from .growth import signal_ceiling as signal_ceiling
from .growth import signal_growth as signal_growth
from .lower_bound import capacity_share as capacity_share
from .lower_bound import envelope_vc as envelope_vc
from .lower_bound import least_parameters as least_parameters
from .lower_bound import least_vc as least_vc
from .lower_bound import lifted as lifted
from .lower_bound import packing as packing
from .lower_bound import packing_size as packing_size
from .lower_bound import parameters_order as parameters_order
from .lower_bound import required_vc as required_vc
from .parameterization import ParameterCondition as ParameterCondition
from .parameterization import check_parameterization as check_parameterization
from .products import product_error as product_error
from .products import product_network as product_network
from .recursion import PatchStep as PatchStep
from .recursion import decoupled_step as decoupled_step
from .recursion import exact_step as exact_step
from .recursion import psi as psi
from .region_count import linear_regions as linear_regions
from .region_count import most_cells as most_cells
from .tensor_power import decay_bound as decay_bound
from .tensor_power import earliest_time as earliest_time
from .tensor_power import growth_time as growth_time
from .tensor_power import noisy_growth_time as noisy_growth_time
from .times import memorisation_times as memorisation_times
from .times import race_number as race_number
from .times import residue_time as residue_time
from .times import signal_time as signal_time
