"""Data sets that can be fetched: their files as published, with sizes and checksums."""

from ..core.config import Config


class File(Config):
    """A file of a data set as its makers published it."""

    name: str
    size: int
    md5: str
    sha256: str


class DataSet(Config):
    """The published files of a data set; an archive is unpacked into `members`."""

    title: str
    terms: str
    files: tuple[File, ...]
    mirrors: tuple[str, ...]
    members: tuple[str, ...] = ()
    """The files wanted from the archive; none where the files are used as they come."""
    member_size: int = 0
    """The size of each of them, where `UNPACKED` does not say it."""

    patterns: tuple[str, ...]
    """The files that the reader of the set can read."""
    loose: bool = True
    """Whether its files have names that tell them apart outside a folder of their own."""


SETS: dict[str, DataSet] = {
    "mnist": DataSet(
        title="MNIST handwritten digits, 60,000 + 10,000 images of 28 x 28",
        terms="LeCun and Cortes, CC BY-SA 3.0",
        files=(
            File(
                name="train-images-idx3-ubyte.gz",
                size=9912422,
                md5="f68b3c2dcbeaaa9fbdd348bbdeb94873",
                sha256="440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
            ),
            File(
                name="train-labels-idx1-ubyte.gz",
                size=28881,
                md5="d53e105ee54ea40749a09fcbcd1e9432",
                sha256="3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
            ),
            File(
                name="t10k-images-idx3-ubyte.gz",
                size=1648877,
                md5="9fb629c4189551a2d022fa330f9573f3",
                sha256="8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
            ),
            File(
                name="t10k-labels-idx1-ubyte.gz",
                size=4542,
                md5="ec29112dd5afa0611ce80d1b7f02629c",
                sha256="f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
            ),
        ),
        mirrors=(
            "https://ossci-datasets.s3.amazonaws.com/mnist",
            "https://storage.googleapis.com/cvdf-datasets/mnist",
        ),
        patterns=("*-ubyte.gz", "*-ubyte", "mnist.npz"),
    ),
    "cifar10": DataSet(
        title="CIFAR-10 colour images, 50,000 + 10,000 images of 32 x 32, binary version",
        terms="Krizhevsky 2009, to be cited; no explicit licence is known",
        files=(
            File(
                name="cifar-10-binary.tar.gz",
                size=170052171,
                md5="c32a1d4ab5d03f1284b67883e8d87530",
                sha256="c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
            ),
        ),
        mirrors=("https://www.cs.toronto.edu/~kriz",),
        members=(
            "data_batch_1.bin",
            "data_batch_2.bin",
            "data_batch_3.bin",
            "data_batch_4.bin",
            "data_batch_5.bin",
            "test_batch.bin",
        ),
        patterns=("*_batch*.bin", "data_batch_[1-5]", "test_batch", "cifar10-*.npz"),
    ),
    "cifar100": DataSet(
        title="CIFAR-100 colour images, 50,000 + 10,000 images of 32 x 32, binary version",
        terms="Krizhevsky 2009, to be cited; no explicit licence is known",
        files=(
            File(
                name="cifar-100-binary.tar.gz",
                size=168513733,
                md5="03b5dce01913d631647c71ecec9e9cb8",
                sha256="58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
            ),
        ),
        mirrors=("https://www.cs.toronto.edu/~kriz",),
        members=("train.bin", "test.bin"),
        patterns=("train.bin", "test.bin", "train", "test", "cifar100-*.npz"),
        loose=False,
    ),
}


UNPACKED: dict[str, tuple[int, str]] = {
    "train-images-idx3-ubyte": (
        47040016, "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"
    ),
    "train-labels-idx1-ubyte": (
        60008, "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"
    ),
    "t10k-images-idx3-ubyte": (
        7840016, "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"
    ),
    "t10k-labels-idx1-ubyte": (
        10008, "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"
    ),
    "data_batch_1.bin": (
        30730000, "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5"
    ),
    "data_batch_2.bin": (
        30730000, "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed"
    ),
    "data_batch_3.bin": (
        30730000, "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67"
    ),
    "data_batch_4.bin": (
        30730000, "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48"
    ),
    "data_batch_5.bin": (
        30730000, "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add"
    ),
    "test_batch.bin": (
        30730000, "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b"
    ),
    "train.bin": (
        153700000, "f31298fc616915fa142368359df1c4ca2ae984d6915ca468b998a5ec6aeebf29"
    ),
    "test.bin": (
        30740000, "d8b1e6b7b3bee4020055f0699b111f60b1af1e262aeb93a0b659061746f8224a"
    ),
}  # fmt: skip
"""Size and sha256 of published files once unpacked. Those of CIFAR are listed by the library
torchvision-ruby, whose first one of CIFAR-10 is that of the genuine images."""
