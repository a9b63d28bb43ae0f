"""What `lemmas` decides, in words."""

from .....report import Claim, empirical, theorem
from .conditions import NAME

WORDS: dict[str, Claim] = {
    "1": theorem("the robust training error is 0 at every t >= 1", NAME),
    "2a": empirical("the robust training loss ends below 0.01"),
    "2b": empirical("the robust training loss falls over each decade of t"),
    "4": empirical("the clean test error is beta, up to 0.01, even at alpha = ||mu||"),
    "5a": empirical("flipped labels are learnt robustly: no error on them at the end"),
    "5b": empirical("and yet the clean test error of the main runs stays at beta, up to 0.005"),
    "6a": theorem("no network's robust test error is more than 0.03 below Theorem 3.2"),
    "6b": theorem("nor more than 0.03 below its tight form"),
    "6c": theorem("at alpha = ||mu|| no robust test error is more than 0.03 below 1/2"),
    "7": theorem(
        "no robust test error is more than 0.03 above Lemma B.2's certificate where its "
        "condition holds"
    ),
    "8a": empirical(
        "in every run the largest ratio of loss gradients of the second half of t >= 100 is at "
        "most 1.2 times that of the first"
    ),
    "8b": empirical("the ratio of loss gradients stays below 10 in at least 80 % of runs"),
    "9a": empirical(
        "attacked inputs are within min(omega sqrt(m d)/eta, alpha) of the span of the data, "
        "in every run up to alpha = ||mu||"
    ),
    "9b": empirical(
        "their distance to the span is proportional to omega: a tenfold start has a tenfold "
        "distance, up to 2"
    ),
    "10": empirical(
        "<mu, y x~>/||mu||^2 stays in [1/3, 3] for clean and [-3, -1/3] for flipped labels in "
        "at least 80 % of runs with n alpha^2/d <= 0.3"
    ),
    "11": empirical(
        "the normalised margin is at least 0.1 ||mu||^2 sqrt(n/d) in every run, for all t >= 1 "
        "and all d"
    ),
    "12": empirical(
        "the first step moves the weights by gamma ||mu||/10 of their size or more in every run"
    ),
    "13a": theorem(
        "without smoothness at least 5 % of examples and neurons are active, for each neuron "
        "and example, at t = 0 and 1",
        NAME,
    ),
    "13b": empirical("without smoothness no neuron's or example's count falls from t = 0 to 1"),
    "13c": empirical("without smoothness an active pair with y = a stays active for all t >= 1"),
    "14": theorem("no margin decreases anywhere in the balls", NAME),
    "15": empirical("the robust training loss falls at least like 1/sqrt(t)"),
    "16a": empirical(
        "at alpha = 0.1 ||mu|| the weights have a cosine of 0.99 or more with those of "
        "standard training",
        NAME,
    ),
    "16b": empirical("the cosine with standard training falls when alpha grows"),
    "20a": empirical("the distance to the span grows with the size of the start"),
    "20b": empirical("the attack turns away from the mean of the data when the start grows"),
    "21": theorem(
        "with all three activations every run ends with robust training error 0, flipped "
        "labels included, robust training loss below 0.01 that fell over each decade, and a "
        "clean test error within 0.01 of beta",
        NAME,
    ),
}
