# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ubuntu's proprietary modules: the package that is named has only the script that links them on the host."""
from __future__ import annotations

import pathlib

import pytest
from ansible_collections.baremetal.nvidia.plugins.module_utils.proof import precompiled

RELEASE = "6.8.0-149-generic"


@pytest.mark.parametrize(("name", "objects"), [
    (f"linux-modules-nvidia-580-server-{RELEASE}", f"linux-objects-nvidia-580-server-{RELEASE}"),
    (f"linux-modules-nvidia-580-{RELEASE}", f"linux-objects-nvidia-580-{RELEASE}"),
    (f"linux-modules-nvidia-580-server-open-{RELEASE}", None),
    ("linux-modules-nvidia-580-server-generic", None), ("kmod-nvidia-580.178.04-5.14.0-687.12.1", None)])
def test_which_package_has_the_objects(name, objects):
    assert precompiled.objects_of(name) == objects


def test_the_objects_are_fetched_and_opened_with_it(tmp_path):
    class Backend:
        def __init__(self):
            self.asked = None

        def download(self, wanted, into):
            self.asked = dict(wanted)
            for name in wanted:
                pathlib.Path(into, name).write_text("x")
            return [str(pathlib.Path(into, name)) for name in wanted]

        def unpack(self, package, tree):
            if pathlib.Path(package).name.startswith("linux-objects-"):
                path = pathlib.Path(tree, "lib/modules", RELEASE, "kernel/nvidia-580srv/bits/nvidia.o")
                path.parent.mkdir(parents=True)
                path.write_text("x")

    backend, name = Backend(), f"linux-modules-nvidia-580-server-{RELEASE}"
    tree = precompiled.open_package(name, "6.8.0-149.149+1", backend, str(tmp_path))
    assert backend.asked == {name: "6.8.0-149.149+1", f"linux-objects-nvidia-580-server-{RELEASE}": "6.8.0-149.149+1"}
    found = precompiled.check(tree, name, release=RELEASE, driver="580.178.04", flavour="proprietary", signed=False,
                              run=lambda *_words, **_options: None)
    assert found == {"modules": ["nvidia"], "signer": None}
