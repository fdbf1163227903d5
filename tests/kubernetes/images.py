"""Images without a registry: `images.py CACHE` writes docker archives of pause and busybox that containerd imports; `write_tool` one of a tool of this
machine next to busybox."""
import hashlib
import io
import json
import pathlib
import shutil
import subprocess
import sys
import tarfile


def add(archive, name, data=b"", mode=0o755, kind=tarfile.REGTYPE, target=""):
    entry = tarfile.TarInfo(name)
    entry.mode, entry.type, entry.linkname, entry.size = mode, kind, target, len(data)
    archive.addfile(entry, io.BytesIO(data))


def layer(binary, path, links, files=()):
    """The binary with links to it, and files of this machine where they are here."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for folder in ("bin", "sbin", "usr", "usr/bin", "usr/sbin", "etc", "proc", "sys", "dev"):
            add(archive, folder, kind=tarfile.DIRTYPE)
        add(archive, "tmp", mode=0o1777, kind=tarfile.DIRTYPE)
        add(archive, path, binary.read_bytes())
        for file in files:
            add(archive, file.lstrip("/"), pathlib.Path(file).read_bytes())
        for link in links:
            add(archive, link, kind=tarfile.SYMTYPE, target="/" + path)
    return made.getvalue()


def write(image, name, content, entrypoint):
    digest = hashlib.sha256(content).hexdigest()
    config = json.dumps({
        "architecture": {"x86_64": "amd64", "aarch64": "arm64"}[subprocess.getoutput("uname -m")], "os": "linux",
        "config": {"Entrypoint": entrypoint, "Env": ["PATH=/bin:/sbin:/usr/bin:/usr/sbin"]},
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + digest]},
    }).encode()
    config_name = hashlib.sha256(config).hexdigest() + ".json"
    manifest = [{"Config": config_name, "RepoTags": [name], "Layers": [digest + ".tar"]}]
    with tarfile.open(image, "w") as archive:
        add(archive, config_name, config, 0o644)
        add(archive, digest + ".tar", content, 0o644)
        add(archive, "manifest.json", json.dumps(manifest).encode(), 0o644)


def write_tool(image, name, cache, tool):
    """A tool of this machine, with the libraries that it loads, next to busybox."""
    tool = shutil.which(tool)
    loads = subprocess.run(["ldd", tool], check=True, capture_output=True, text=True).stdout
    libraries = [word for word in loads.split() if word.startswith("/")]
    write(image, name, layer(*busybox(cache), files=[tool, *libraries]), [])


def busybox(cache):
    binary = cache / "root/bin/busybox"
    applets = subprocess.run([binary, "--list-full"], check=True, capture_output=True, text=True).stdout.split()
    return binary, "bin/busybox", [applet for applet in applets if applet != "bin/busybox"]


def main():
    cache = pathlib.Path(sys.argv[1])
    images = cache / "images"
    images.mkdir(exist_ok=True)
    pause = cache / "pause"
    subprocess.run(["cc", "-Os", "-static", "-s", "-o", pause, "pause.c"], check=True)
    write(images / "pause.tar", "eastwest.test/pause:1", layer(pause, "pause", []), ["/pause"])
    write(images / "busybox.tar", "eastwest.test/busybox:1", layer(*busybox(cache)), [])


if __name__ == "__main__":
    main()
