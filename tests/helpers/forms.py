"""The same examples and the same classifier in every form in which people have them."""

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

N, D, CLASSES = 40, 4, 3
X = torch.rand(N, D, generator=torch.Generator().manual_seed(0))


class Net(nn.Sequential):
    def __init__(self, outputs: int = CLASSES):
        torch.manual_seed(0)
        super().__init__(nn.Linear(D, 8), nn.ReLU(), nn.Linear(8, outputs))
        with torch.no_grad():  # so that every class is some row's answer
            self[2].weight.mul_(6)
            self[2].bias.copy_(-self[2](self[1](self[0](X))).mean(0) + self[2].bias)


class Returns(nn.Module):
    def __init__(self, pack, outputs: int = CLASSES):
        super().__init__()
        self.net, self.pack = Net(outputs), pack

    def forward(self, x: Tensor):
        return self.pack(self.net(x))


class Answer:
    def __init__(self, logits: Tensor):
        self.logits = logits


class Pairs(Dataset):
    """Single examples by number."""

    def __init__(self, x, y):
        self.x, self.y = x, y

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, row: int):
        return self.x[row], self.y[row]


class Stream(IterableDataset):
    def __init__(self, x, y):
        self.pairs = Pairs(x, y)

    def __iter__(self):
        return (self.pairs[row] for row in range(len(self.pairs)))


def parts(x, y, size: int = 7):
    return [(x[k : k + size], y[k : k + size]) for k in range(0, len(x), size)]


DATA = {
    "tensors": lambda x, y: (x, y),
    "numpy": lambda x, y: (x.numpy(), y.numpy()),
    "lists": lambda x, y: (x.tolist(), y.tolist()),
    "pair": lambda x, y: ((x, y),),
    "dict": lambda x, y: ({"image": x, "label": y},),
    "TensorDataset": lambda x, y: (TensorDataset(x, y),),
    "Dataset": lambda x, y: (Pairs(x, y),),
    "Dataset of numpy": lambda x, y: (Pairs(x.numpy(), y.numpy()),),
    "IterableDataset": lambda x, y: (Stream(x, y),),
    "DataLoader": lambda x, y: (DataLoader(TensorDataset(x, y), batch_size=7),),
    "DataLoader of a stream": lambda x, y: (DataLoader(Stream(x, y), batch_size=7),),
    "list of batches": lambda x, y: (parts(x, y),),
    "generator of batches": lambda x, y: (iter(parts(x, y)),),
    "generator of triples": lambda x, y: (((a, b, 0) for a, b in parts(x, y)),),
    "dicts of batches": lambda x, y: (
        [{"pixel_values": a.numpy(), "labels": b.tolist()} for a, b in parts(x, y)],
    ),
    "single examples": lambda x, y: (zip(x, y.tolist(), strict=True),),
}
"""x and y as arguments of `attack` and `evaluate`."""


def labels_of(x: Tensor) -> Tensor:
    with torch.no_grad():
        return Net()(x).argmax(1)


MODELS = {
    "network": Net,
    "float64": lambda: Net().double(),
    "float16": lambda: Net().half(),
    "tuple": lambda: Returns(lambda z: (z, None)),
    "dict": lambda: Returns(lambda z: {"logits": z}),
    "object": lambda: Returns(Answer),
    "numpy out": lambda: Returns(lambda z: z.detach().numpy()),
    "function of scores": lambda: Net().forward,
    "function of arrays": lambda: lambda x: np.asarray(_scores(np.asarray(x, dtype=np.float32))),
    "labels only": lambda: labels_of,
    "labels in words": lambda: lambda x: np.array(["a", "b", "c"])[labels_of(x).numpy()],
}
"""Classifiers of three classes with the same answers."""


def _scores(x: np.ndarray) -> np.ndarray:
    net = Net()
    w0, b0, w1, b1 = (p.detach().numpy() for p in net.parameters())
    return np.maximum(x @ w0.T + b0, 0) @ w1.T + b1
