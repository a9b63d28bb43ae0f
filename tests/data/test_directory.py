"""The data directory, and fetching over real HTTP from a server on this machine."""

import functools
import hashlib
import io
import os
import tarfile
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from advlab.core.errors import AdvlabError
from advlab.data.directory import data_root, find, present
from advlab.data.download import fetch
from advlab.data.published import SETS, DataSet, File


class Handler(SimpleHTTPRequestHandler):
    """Serves a folder and notes the requests; cuts /cut/ short and never ends /endless/."""

    def log_message(self, *args):
        self.server.asked.append(self.path)

    def do_GET(self):
        if self.path.startswith("/endless/"):
            return self.send_without_end()
        if not self.path.startswith("/cut/"):
            return super().do_GET()
        body = (Path(self.directory) / Path(self.path).name).read_bytes()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2])
        return None

    def send_without_end(self):
        self.send_response(200)
        self.end_headers()
        try:
            while True:
                self.wfile.write(bytes(100_000))
        except ConnectionError:
            self.close_connection = True


@pytest.fixture
def server(tmp_path, monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    folder = tmp_path / "served"
    folder.mkdir()
    handler = functools.partial(Handler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as httpd:
        httpd.asked = []
        httpd.folder = folder
        httpd.url = f"http://127.0.0.1:{httpd.server_port}"
        thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield httpd
        httpd.shutdown()
        thread.join()


def publish(server, name: str, body: bytes) -> File:
    (server.folder / name).write_bytes(body)
    return File(
        name=name,
        size=len(body),
        md5=hashlib.md5(body).hexdigest(),
        sha256=hashlib.sha256(body).hexdigest(),
    )


@pytest.fixture
def tiny(server, monkeypatch):
    files = tuple(publish(server, name, os.urandom(200_000)) for name in ("one.gz", "two.gz"))
    tiny = DataSet(title="Tiny", terms="-", files=files, mirrors=(server.url,), patterns=("*.gz",))
    monkeypatch.setitem(SETS, "tiny", tiny)
    return tiny


def left(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def test_fetched_files_are_the_served_ones(server, tiny, tmp_path, capfd):
    folder = fetch("tiny", tmp_path / "data")
    assert folder == tmp_path / "data" / "tiny"
    assert left(tmp_path / "data") == ["tiny/one.gz", "tiny/two.gz"]
    for name in ("one.gz", "two.gz"):
        assert (folder / name).read_bytes() == (server.folder / name).read_bytes()
        assert find("tiny", name, tmp_path / "data") == folder / name
    assert present("tiny", tmp_path / "data") == [folder / "one.gz", folder / "two.gz"]
    assert capfd.readouterr() == ("", "")


def test_only_what_is_missing_or_damaged_is_fetched(server, tiny, tmp_path):
    folder = fetch("tiny", tmp_path)
    (folder / "two.gz").write_bytes(b"damaged")
    server.asked.clear()
    fetch("tiny", tmp_path)
    assert server.asked == ["/two.gz"]
    assert (folder / "two.gz").read_bytes() == (server.folder / "two.gz").read_bytes()
    server.asked.clear()
    fetch("tiny", tmp_path)
    assert server.asked == []


@pytest.mark.parametrize(
    ("served", "says"),
    [
        (lambda body: body[:-1] + bytes([body[-1] ^ 1]), "wrong checksum, sha256"),
        (lambda body: body[:-1], "truncated, 199999 of 200000 bytes"),
        (lambda body: body + b"0" * 500_000, "too long, more than 200000 bytes"),
    ],
)
def test_a_wrong_file_is_refused_and_leaves_nothing(server, tiny, tmp_path, served, says):
    file = server.folder / "one.gz"
    file.write_bytes(served(file.read_bytes()))
    with pytest.raises(AdvlabError, match=says):
        fetch("tiny", tmp_path / "data")
    assert left(tmp_path / "data") == []


def test_a_wrong_md5_is_refused_too(server, tiny, tmp_path, monkeypatch):
    one = tiny.files[0].model_copy(update={"md5": "0" * 32})
    monkeypatch.setitem(SETS, "tiny", tiny.model_copy(update={"files": (one,)}))
    with pytest.raises(AdvlabError, match="wrong checksum, md5"):
        fetch("tiny", tmp_path / "data")


def test_a_connection_cut_short_is_refused(server, tiny, tmp_path):
    with pytest.raises(AdvlabError, match=r"one\.gz could not be fetched .* 100000 "):
        fetch("tiny", tmp_path / "data", [f"{server.url}/cut"])
    assert left(tmp_path / "data") == []


def test_a_file_without_end_is_refused(server, tiny, tmp_path):
    with pytest.raises(AdvlabError, match="too long"):
        fetch("tiny", tmp_path / "data", [f"{server.url}/endless"])
    assert left(tmp_path / "data") == []


def test_the_next_mirror_is_tried(server, tiny, tmp_path):
    mirrors = [f"{server.url}/none", f"{server.url}/cut/", f"{server.url}/"]
    folder = fetch("tiny", tmp_path / "data", mirrors)
    assert (folder / "one.gz").read_bytes() == (server.folder / "one.gz").read_bytes()


def test_a_missing_file_names_the_answer_of_the_server(server, tiny, tmp_path):
    (server.folder / "two.gz").unlink()
    with pytest.raises(AdvlabError, match=r"two\.gz could not be fetched .*404"):
        fetch("tiny", tmp_path / "data")
    assert left(tmp_path / "data") == ["tiny/one.gz"]


def test_offline_says_in_one_line_how_to_do_it_by_hand(server, tiny, tmp_path):
    server.shutdown()
    server.server_close()
    with pytest.raises(AdvlabError) as caught:
        fetch("tiny", tmp_path / "data")
    text = str(caught.value)
    assert "\n" not in text
    assert "refused" in text
    assert str(tmp_path / "data" / "tiny") in text
    for file in tiny.files:
        assert f"{file.name} (md5 {file.md5})" in text


def archive(members: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as tar:
        for name, body in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(body)
            tar.addfile(info, io.BytesIO(body))
    return stream.getvalue()


def packed(server, monkeypatch, members: dict[str, bytes]) -> None:
    monkeypatch.setitem(
        SETS,
        "packed",
        DataSet(
            title="Packed",
            terms="-",
            files=(publish(server, "packed.tar.gz", archive(members)),),
            mirrors=(server.url,),
            members=("a.bin", "b.bin"),
            member_size=5,
            patterns=("*.bin",),
        ),
    )


def test_an_archive_is_unpacked_once(server, monkeypatch, tmp_path):
    packed(server, monkeypatch, {"in/a.bin": b"aaaaa", "in/b.bin": b"bbbbb", "in/more": b"x"})
    folder = fetch("packed", tmp_path / "data")
    assert left(tmp_path / "data") == ["packed/a.bin", "packed/b.bin"]
    assert (folder / "b.bin").read_bytes() == b"bbbbb"
    server.asked.clear()
    fetch("packed", tmp_path / "data")
    assert server.asked == []


@pytest.mark.parametrize("name", ["../../../escaped.bin", "in/other.bin"])
def test_a_hostile_or_wrong_archive_leaves_nothing(server, monkeypatch, tmp_path, name):
    packed(server, monkeypatch, {name: b"xxxxx", "in/a.bin": b"aaaaa"})
    with pytest.raises(AdvlabError, match="archive"):
        fetch("packed", tmp_path / "data")
    assert left(tmp_path / "data") == []
    assert not list(tmp_path.rglob("escaped.bin"))


def test_wrong_names_mirrors_and_places_are_refused(tiny, tmp_path):
    with pytest.raises(AdvlabError, match=r"mnist, cifar10.*got 'minst'"):
        fetch("minst", tmp_path)
    for url in ("file:///etc", "ftp://host/x", "host/x", "http://", "http://[x"):
        with pytest.raises(AdvlabError, match="http or https"):
            fetch("tiny", tmp_path, [url])
    (tmp_path / "file").write_text("")
    with pytest.raises(AdvlabError, match="can be written"):
        fetch("tiny", tmp_path / "file")


def test_the_directory_is_the_given_one_then_the_variable_then_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ADVLAB_DATA", str(tmp_path / "named"))
    assert data_root(tmp_path / "given").path == tmp_path / "given"
    assert data_root().path == tmp_path / "named"
    assert "ADVLAB_DATA" in data_root().reason
    monkeypatch.setenv("ADVLAB_DATA", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert data_root().path == tmp_path / "cache" / "advlab" / "data"
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for value in ("", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", value)
        assert data_root().path == tmp_path / "home" / ".cache" / "advlab" / "data"
    assert data_root("~/x").path == tmp_path / "home" / "x"
