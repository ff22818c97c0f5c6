"""A local apt source built from installed packages, for tests without a network."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

USE = """
rm -rf /etc/apt/sources.list /etc/apt/sources.list.d /var/lib/apt/lists
echo 'deb [trusted=yes] file:{folder} ./' >/etc/apt/sources.list
"""


def make_source(folder, packages):
    """Rebuild installed packages, with an index. Returns the script that makes this apt's only source."""
    entries = [_package(folder, name) for name in packages]
    (folder / "Packages").write_text("\n".join(entries))
    return USE.format(folder="/mnt/shared/" + folder.name).strip()


def _package(folder, name):
    tree = folder / name
    for line in _output("dpkg-query", "--listfiles", name).splitlines():
        path = Path(line)
        if line.startswith("/") and line != "/.":
            copy = tree / path.parent.resolve().relative_to("/") / path.name  # /lib is a link to /usr/lib
            if path.is_dir() and not path.is_symlink():
                copy.mkdir(parents=True, exist_ok=True)
            elif path.is_file() or path.is_symlink():
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, copy, follow_symlinks=False)
    fields = {
        "Package": name,
        "Version": _output("dpkg-query", "--show", "--showformat=${Version}", name),
        "Architecture": _output("dpkg", "--print-architecture").strip(),
        "Maintainer": "tests",
        "Description": "made of what is installed",
    }
    scripts = tree / "DEBIAN"
    scripts.mkdir(parents=True)
    for script in ("preinst", "postinst", "prerm", "postrm", "conffiles"):
        if (kept := Path(f"/var/lib/dpkg/info/{name}.{script}")).exists():
            shutil.copy2(kept, scripts / script)
    control = "".join(f"{key}: {value}\n" for key, value in fields.items())
    (scripts / "control").write_text(control)
    made = folder / f"{name}.deb"
    subprocess.run(["dpkg-deb", "-Znone", "--build", tree, made], check=True, capture_output=True)
    shutil.rmtree(tree)
    digest = hashlib.sha256(made.read_bytes()).hexdigest()
    return f"{control}Filename: ./{made.name}\nSize: {made.stat().st_size}\nSHA256: {digest}\n"


def _output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
