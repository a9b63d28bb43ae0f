"""What the reader of a docstring's example has: data, models, losses; and what is made smaller."""

COMMON = """
import numpy as np
import torch
from torch import nn

from advlab.core.randomness import generator
from advlab.losses import ModelLoss, cross_entropy, logistic, squared
from advlab.threats import Ball, Cap

torch.manual_seed(0)
x, y = torch.rand(8, 6), torch.arange(8) % 3
x_test, y_test = torch.rand(8, 6), torch.arange(8) % 3
model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
net = other = first = second = model
ball, rng, seed = Ball("linf", 0.1, box=(0, 1)), generator("examples"), 0
loss = ModelLoss(model, y, cross_entropy)
"""
"""Before every example."""

_SIGNS = """
y = torch.tensor([1.0, -1.0] * 4)
net = model = nn.Sequential(nn.Linear(6, 4), nn.Tanh(), nn.Linear(4, 1))
"""
_SPHERE = (
    _SIGNS
    + """
x = x / x.norm(dim=1, keepdim=True)
loss = ModelLoss(model, y, logistic)
"""
)
_ARRAYS = """
rng = np.random.default_rng(0)
x = X = rng.standard_normal((30, 5))
coef, b = np.ones(5), 0.0
y = x @ coef + 0.1 * rng.standard_normal(30)
"""
_CLASSES = _ARRAYS + "\ny = (y > 0).astype(int)"
_IMAGES = """
x, y, x_test, y_test = torch.rand(4, 3, 8, 8), torch.arange(4) % 3, torch.rand(4, 3, 8, 8), y[:4]
model = net = nn.Sequential()
model.layers = nn.ModuleList([nn.Conv2d(3, 6, 3, padding=1), nn.ReLU(), nn.Conv2d(6, 4, 3),
                              nn.Conv2d(4, 4, 3)])
model.conv1, model.fc1 = model.layers[0], nn.Linear(784, 5)
W = model.conv1.weight.detach().flatten(1)
W = W / W.norm(dim=1, keepdim=True)
"""
_NAMED = """
class Named(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Conv2d(3, 12, 5), nn.ReLU(), nn.Flatten(),
                                     nn.Linear(12 * 28 * 28, 12)])
        self.conv1, self.fc1 = nn.Conv2d(3, 6, 3), nn.Linear(784, 5)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x

start, clean, robust, longer_clean, model = (Named() for _ in range(5))
net, w0, w1, w2 = model, clean, robust, longer_clean
w, layer = torch.rand(5, 6), model.fc1
x, y = torch.rand(4, 3, 8, 8), torch.arange(4) % 3
"""
_DICTIONARY = (
    _NAMED
    + """
from advlab.measure.dictionaries import ConvolutionalDictionary
W = ConvolutionalDictionary.of(model.conv1).normalised()
"""
)
_LASSO = """
rng = np.random.default_rng(0)
theta0 = np.eye(6)[0]
x = rng.standard_normal((40, 6))
y = x @ theta0 + 0.1 * rng.standard_normal(40)
star, estimate = 0.9 * theta0, 0.8 * theta0 + 0.01
"""
_RESULT = """
from pathlib import Path
from advlab import lab
result = lab.run("generalization/fig5", scale="smoke", seeds=2, jobs=1, out="runs")
folder, old, new = Path("runs/generalization/fig5"), [result], [result]
"""
_MODULE = """
import sys
from pathlib import Path
Path("my_nets.py").write_text("from torch import nn\\nclass Net(nn.Linear):\\n    "
                              "def __init__(self):\\n        super().__init__(6, 3)\\nnet = Net()")
monkeypatch.syspath_prepend(".")
monkeypatch.delitem(sys.modules, "my_nets", raising=False)
"""

_PHOTOS = """
from pathlib import Path
from PIL import Image
for part in ("train", "val", "test")[:parts]:
    for place, name in enumerate("abc"):
        (Path("photos") / part / name).mkdir(parents=True)
        Image.new("RGB", (40, 32), (80 * place, 9, 9)).save(f"photos/{part}/{name}/1.png")
model = nn.Sequential(nn.Flatten(), nn.Linear(3072, 3))
"""

SETUPS: dict[str, str] = {
    "attacks/apgd.py": "x, y = x[:2], y[:2]",
    "attacks/autoattack.py": "x, y = x[:2], y[:2]",
    "attacks/spsa.py": "x, y = x[:2], y[:2]",
    "attacks/bpda.py": "quantised = lambda x: model((8 * x).round() / 8)",
    "attacks/coordinate.py": (
        "x = torch.cat([torch.rand(8, 5), torch.eye(3)[torch.arange(8) % 3]], 1)\n"
        "model = nn.Linear(8, 3)"
    ),
    "attacks/exact.py": "w, y = torch.ones(6), torch.rand(8)",
    "attacks/fake_signal.py": _SIGNS + "\nx = torch.rand(8, 4, 3)\nnet = nn.Sequential("
    "nn.Flatten(), nn.Linear(12, 1))",
    "attacks/grid.py": "x, loss = x[:, :2], ModelLoss(nn.Linear(2, 3), y, cross_entropy)",
    "attacks/gta.py": _SIGNS + "\nx, direction = torch.rand(8, 4, 3), torch.tensor([1.0, 0.0, 0.0])"
    "\nnet = nn.Sequential(nn.Flatten(), nn.Linear(12, 1))",
    "attacks/hopskipjump.py": "predict = lambda x: model(x).argmax(1)",
    "attacks/non_adversarial.py": _SPHERE,
    "attacks/non_adversarial.py:Anti": "",
    "attacks/rays.py": "predict = lambda x: model(x).argmax(1)",
    "attacks/surrogate.py": "y, model = torch.rand(8), nn.Linear(6, 1)",
    "certify/beta_crown.py": "network = model",
    "certify/branch_and_bound.py": "two_layer = model",
    "certify/linear.py": "x = torch.rand(8, 784)",
    "core/identity.py": 'stored, now = {"data: y": "a"}, {"data: y": "b"}',
    "core/imports.py": _MODULE,
    "core/progress.py": "batches, step = [1, 2], lambda batch: None",
    "data/all_parts.py": "parts = 2" + _PHOTOS,
    "data/images.py": "parts = 3" + _PHOTOS,
    "data/augment.py": "epoch, x = 0, torch.rand(4, 3, 8, 8)",
    "data/loaders.py": "dataset = torch.utils.data.TensorDataset(x, y)",
    "data/recorded.py:recorded": (
        'from pathlib import Path\nPath("measured.csv").write_text("a\\n1\\n")'
    ),
    "evaluation/output.py": "y, model = torch.rand(8), nn.Linear(6, 1)",
    "lab/installed.py": _MODULE,
    "lab/shared.py": (
        "import polars as pl\nfrom advlab.lab import Case, Computed\n"
        "class Training(Case): pass\n"
        'def train(case): return Computed(pl.DataFrame({"a": [1]}), {"weights": np.ones(2)})'
    ),
    "lab/store.py": _RESULT + "\ncase = lab.load('generalization/fig5').cases('smoke', 2)[0]",
    "lab/summary.py": _RESULT,
    "lab/summary.py:outdated": _RESULT + "\nfrom advlab.lab.summary import table, write\n"
    'write(result, table(result, folder), Path("results/generalization/fig5.parquet"))',
    "lab/verify.py": _RESULT,
    "linear/adversarial_path.py": _ARRAYS,
    "linear/data_risks.py": _ARRAYS,
    "linear/default_radius.py": _ARRAYS,
    "linear/estimators.py": _ARRAYS,
    "linear/estimators.py:AdversarialClassifier": _CLASSES,
    "linear/estimators_cv.py": _ARRAYS,
    "linear/estimators_cv.py:AdversarialClassifierCV": _CLASSES,
    "linear/min_norm_l1.py": _ARRAYS + "\nx, y = x[:4], y[:4]",
    "linear/samples.py": _ARRAYS,
    "linear/solve.py": _ARRAYS,
    "measure/activation_maximisation.py": _NAMED,
    "measure/audit.py": (
        "import copy\ngoal, batches = copy.deepcopy(model), [(x, y)]\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)"
    ),
    "measure/audit.py:Audit": (
        "import copy\nfrom advlab.training import WholeBall\n"
        "goal, cap = copy.deepcopy(model), ball\nball = WholeBall(radius=10.0)"
    ),
    "measure/correlations.py": _NAMED,
    "measure/correlations.py:absolute_cosines": "w = torch.rand(5, 6)",
    "measure/correlations.py:stage_correlations": _NAMED + "\nw = robust",
    "measure/dictionaries.py": _NAMED,
    "measure/sparse_reconstruction.py": _DICTIONARY,
    "measure/spectra.py": _NAMED + "\nfrom advlab.attacks import Attacked\nlayer = model.conv1\n"
    "attacked = Attacked(x + 0.1 * torch.rand_like(x), torch.zeros(4))",
    "measure/tangent_kernel.py:tangent_kernels": (
        "model = nn.Sequential()\nmodel.layers = nn.Sequential(nn.Linear(6, 3))"
    ),
    "models/array_function.py": "weights = np.ones((6, 3))",
    "models/folder.py": _MODULE + "\nfrom advlab.models import NetworkDescription, save_model\n"
    'about = NetworkDescription(network="lenet5", channels=1, side=28, classes=10)\n'
    'save_model("run", about.build(rng=0), about, {"epochs": 20})\n'
    'own = NetworkDescription(network="my_nets:Net", channels=1, side=28, classes=3)\n'
    'import my_nets\nsave_model("mine", my_nets.Net(), own)',
    "models/labels_only.py": (
        "clean = model\nclass service:\n    predict = staticmethod("
        "lambda x: clean(torch.as_tensor(x)).argmax(1).numpy())"
    ),
    "papers/benign/measures/__init__.py": (
        "from advlab.attacks import PGD\nfrom advlab.models import TwoLayer\n"
        "from advlab.papers.benign.data import NoisyMixture\n"
        "data_model, attack = NoisyMixture(n=5, d=6, mu_norm=2.0), PGD(steps=2)\n"
        'model = TwoLayer.draw(6, 4, "relu", omega=0.1, rng=generator("net"))\n'
        'data, ball = data_model.sample(generator("data")), Ball("l2", 0.5)'
    ),
    "papers/benign/measures/rare_errors.py": (
        "from advlab.models import Stack, TwoLayer\n"
        'model = Stack([TwoLayer.draw(6, 4, "relu", omega=0.1, rng=rng) for _ in range(5)])'
    ),
    "papers/benign/reductions/reduced.py": (
        "x = torch.randn(8, 50)\ny = torch.tensor([1.0, -1.0] * 4)\n"
        "net = nn.Sequential(nn.Linear(50, 4), nn.Tanh(), nn.Linear(4, 1))"
    ),
    "papers/cgro/reductions/patch_pgd.py": "eta = torch.full((1,), 0.02)",
    "papers/cgro/theory/explicit_network.py": (
        "points, labels = np.array([[0.0, 0, 0, 0], [0, 0, 0, 1]]), np.array([-1.0, 1.0])"
    ),
    "papers/convergence/measures/compatibility.py": _SPHERE,
    "papers/convergence/reductions/low_rank_deep.py": (
        "x = nn.functional.normalize(torch.randn(6, 3, dtype=torch.float64), dim=1)\n"
        "y = torch.ones(6, dtype=torch.float64)"
    ),
    "papers/convergence/reductions/linearised_deep.py": (
        "from advlab.papers.convergence.models import DeepReLU\n"
        "from advlab.papers.convergence.reductions import LowRankDeep\n"
        "runs = LowRankDeep([DeepReLU.draw(3, 16, 2, rng)], radii=(1.0,))\n"
        "y = torch.ones(1, 6, dtype=torch.float64)"
    ),
    "papers/convergence/theory/convolutional_kernel.py": "images = np.random.rand(3, 1, 4, 4)",
    "papers/convergence/theory/quadratic_floor.py": (
        "from advlab.papers.convergence.data import Antipodes\n"
        'sample = Antipodes(n=20, d=3, labels="equal").sample(rng)\n'
        "x, y = sample.x.numpy(), sample.y.numpy()"
    ),
    "papers/convergence/theory/robust_network.py": (
        "rng = np.random.default_rng(0)\nx, y = np.eye(3), np.array([1.0, -1.0, 1.0])"
    ),
    "papers/generalization/theory/adversarial_lasso.py": _LASSO,
    "papers/generalization/theory/lasso_cone.py": _LASSO,
    "papers/generalization/theory/surrogate_lasso.py": _LASSO,
    "papers/purification/models/symmetric_relu.py": (
        "x, y = torch.rand(8, 256, dtype=torch.float64), torch.ones(8)"
    ),
    "papers/purification/reductions/sparse_products.py": (
        "weight, gates, slope = torch.rand(4, 6), torch.rand(8, 4) > 0.5, torch.rand(8)"
    ),
    "report/colours.py": (
        "import altair as alt\nchart = other = alt.Chart({'values': [{'a': 1, 'b': 'c'}]})"
        ".mark_point().encode(x='a:Q', color='b:N')"
    ),
    "report/comparison.py": _RESULT,
    "report/continued.py": _RESULT,
    "report/image_grid.py": _NAMED + "\nw, w1 = (one.conv1.weight.detach().numpy() for one in "
    "(clean, robust))",
    "report/leave.py": _RESULT,
    "report/measured.py": _RESULT,
    "report/printed.py": (
        "from pathlib import Path\n"
        'Path("printed.toml").write_text(\'["benign/fig1/17a"]\\nprinted = "4"\\nvalue = 4.0\\n'
        'where = "Figure 1"\')'
    ),
    "report/robustness.py": (
        'import advlab\nfound = advlab.curve(model, x, y, "linf", box=(0, 1), radii=[0.01, 0.1])'
    ),
    "report/tiles.py": _NAMED + "\nimport polars as pl\nfrom advlab.report.tiles import tile_rows\n"
    "table = tile_rows(net.conv1.weight.detach().numpy(), row='clean', signed=True)"
    ".with_columns(seed=pl.lit(0))",
    "testing/attacks.py": "from advlab.attacks import PGD as MyAttack",
    "testing/certificates.py": "from advlab.certify import IBP as MyBound",
    "testing/data.py": (
        "from functools import partial\nfrom advlab.papers.benign.data import NoisyMixture\n"
        "Halfspace = partial(NoisyMixture, mu_norm=2.0)"
    ),
    "testing/threats.py": "class MySet(Ball):\n    norm: str = 'l2'",
    "threats/ball.py": "noise, weight = 0.2 * torch.randn(8, 6), torch.rand(6)",
    "threats/cap.py": "gradient = torch.rand(8, 6)",
    "threats/feature_ball.py": "mask = np.zeros((28, 28), dtype=bool)",
    "threats/patch.py": (
        "x, model = torch.rand(8, 1, 28, 28), nn.Sequential(nn.Flatten(), nn.Linear(784, 3))"
    ),
    "training/layers.py": "net = nn.Sequential(*model, nn.ReLU(), nn.Linear(3, 3))",
    "training/recipes/reading.py:recipe": (
        "from pathlib import Path\n"
        'Path("mine.toml").write_text(\'recipe = "trades"\\nbeta = 3.0\\n\')'
    ),
}
"""Before those of a file, or of one name in it, after `COMMON`."""

SHORTER: dict[str, dict[str, str]] = {
    "attacks/spsa.py:SPSA": {"samples=128": "samples=8"},
    "lab/experiment.py:run": {'out="runs")': 'out="runs", jobs=1)'},
    "models/estimator.py:Estimator": {"0.1))": '0.1), budget="2s")'},
    "papers/convergence/reductions/low_rank_deep.py:LowRankDeep": {"4096": "64"},
    "report/leave.py:leave": {'lab.run("generalization/fig5")': "result"},
    "training/overfitting.py:CatastrophicOverfitting": {"steps=3000": "steps=100"},
    "training/weight_perturbation.py:AWP": {"steps=500": "steps=5"},
}
"""Sizes that a test has no time for, and what it takes instead."""

FRAGMENTS: dict[str, str] = {
    "core/errors.py:AdvlabError": "it raises the error",
    "core/registry.py:Registry": "a part that somebody else's package registers",
    "data/arrays.py:Arrays": "CIFAR-10",
    "data/resolve.py:resolve": "CIFAR-10",
    "data/splits.py:split": "MNIST",
    "lab/sweep.py:sweep": "workers import the Case and its compute from a file",
    "models/onnx_file.py:onnx_model": "an ONNX file",
    "models/sandboxed.py:SandboxedModel": "a file of torch.export",
    "papers/purification/data/images.py:image_parts": "CIFAR-10",
    "papers/purification/experiments/_parts/image_reconstructions.py:outside_span": "inside a run",
    "papers/purification/experiments/_parts/image_runs.py:Trainings": "inside a run",
}
"""Examples that are not run, and what they would need."""
