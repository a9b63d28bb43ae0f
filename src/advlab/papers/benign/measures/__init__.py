"""What the lemmas of the benign overfitting paper speak of, measured on a run of Algorithm 1.

A `Snapshot` holds a network, or a stack of them, at one step with its attacked inputs. The measures
take a snapshot and give one number per replicate, example or neuron; those that compare a step with
the next take that step themselves, of size `eta`. Each docstring names the lemma; the lemmas'
bounds are in `papers.benign.theory`.

Example:
    from advlab.papers.benign.measures import Snapshot, loss_ratio
    now = Snapshot.take(model, data, data_model.mu(), ball, attack)
    loss_ratio(now)  # (R,): max over i, j of g~_i/g~_j, one per replicate
"""

from .activations import ActiveShares as ActiveShares
from .activations import activation_gain as activation_gain
from .activations import active as active
from .activations import active_shares as active_shares
from .activations import lost_pairs as lost_pairs
from .decomposition import Decomposition as Decomposition
from .decomposition import margin_decomposition as margin_decomposition
from .fresh_points import Errors as Errors
from .fresh_points import aligned_share as aligned_share
from .fresh_points import class_margins as class_margins
from .fresh_points import errors as errors
from .fresh_points import normalised_margin as normalised_margin
from .fresh_points import spectral_norm as spectral_norm
from .growth import averaged_bound as averaged_bound
from .growth import norm_growth as norm_growth
from .growth import relative_move as relative_move
from .growth import weight_norm as weight_norm
from .loss_gradients import GradientBounds as GradientBounds
from .loss_gradients import gradient_alignment as gradient_alignment
from .loss_gradients import gradient_bounds as gradient_bounds
from .loss_gradients import gradient_size as gradient_size
from .loss_gradients import loss_ratio as loss_ratio
from .loss_gradients import noisy_training_error as noisy_training_error
from .loss_gradients import robust_training_error as robust_training_error
from .network_gradients import GradientProducts as GradientProducts
from .network_gradients import gradient_products as gradient_products
from .neuron_margins import kept_pairs as kept_pairs
from .neuron_margins import neuron_margins as neuron_margins
from .neuron_margins import neuron_sizes as neuron_sizes
from .neuron_margins import open_pairs as open_pairs
from .neuron_margins import secant_floor as secant_floor
from .probes import probes as probes
from .rare_errors import RareErrors as RareErrors
from .rare_errors import rare_errors as rare_errors
from .snapshot import Networks as Networks
from .snapshot import Snapshot as Snapshot
from .span import perturbation_alignment as perturbation_alignment
from .span import signal_products as signal_products
from .span import span_distance as span_distance
from .standard_training import gradient_gap as gradient_gap
from .standard_training import trajectory_cosine as trajectory_cosine
from .steps import FreshStep as FreshStep
from .steps import fresh_step as fresh_step
from .steps import margin_steps as margin_steps
from .steps import relative_margin_steps as relative_margin_steps
from .steps import scaled_margin_steps as scaled_margin_steps
from .steps import secant_step as secant_step
from .steps import secants as secants
