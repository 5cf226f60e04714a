# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The two files that keep apt from moving a pinned set: pure functions from names to text.

The planner computes with them what should stand on the host, the module writes it: the same text on both sides.
"""
from __future__ import annotations

import re
from collections.abc import Iterable

from . import families

PREFERENCES_PATH = "/etc/apt/preferences.d/baremetal-nvidia"
AUTO_UPGRADES_PATH = "/etc/apt/apt.conf.d/52baremetal-nvidia"
DEFAULT_SET = "kernel"
_HEAD = "Managed by baremetal.nvidia (module kernel_pin): changes by hand are undone by its next run."


def preferences_path(pin_set: str = DEFAULT_SET) -> str:
    """The preferences file of a set; the kernel's has the plain name."""
    return PREFERENCES_PATH if pin_set == DEFAULT_SET else f"{PREFERENCES_PATH}-{pin_set}"


def auto_upgrades_path(pin_set: str = DEFAULT_SET) -> str:
    """The apt.conf.d file of a set; the kernel's has the plain name."""
    return AUTO_UPGRADES_PATH if pin_set == DEFAULT_SET else f"{AUTO_UPGRADES_PATH}-{pin_set}"


def preferences(deny: Iterable[str]) -> str:
    """An apt preferences file that leaves each name (or glob) of ``deny`` without a candidate; "" for none.

    A negative priority never installs (apt_preferences(5)). Explanation lines are comments to apt.
    """
    names = sorted(set(deny))
    if not names:
        return ""
    stanzas = [f"Package: {name}\nPin: version *\nPin-Priority: -1\n" for name in names]
    why = "A package of this list could bring in a kernel without a proved NVIDIA module."
    return f"# {_HEAD}\n# {why}\n\n" + "\n".join(stanzas)


def unattended(hold: Iterable[str], deny: Iterable[str] = (), patterns: Iterable[str] = ()) -> str:
    """An apt.conf.d file that keeps unattended-upgrades away from names, globs and regular expressions; "" for none.

    Entries are Python regular expressions, matched from the start of a name. Names of a kernel family become that
    family's prefixes, so that a kernel whose name nobody knows yet is left out as well.
    """
    entries = {f"(?:{pattern})$" for pattern in patterns}
    for name in set(hold) | set(deny):
        prefix = next((p for p in families.PREFIXES if name.startswith(p)), None)
        if prefix:
            entries.add(prefix)
        else:
            escaped = re.sub(r"([.+])", r"\\\1", name)
            entries.add(escaped.replace("*", ".*").replace("?", ".") + "$")
    if not entries:
        return ""
    lines = "".join(f'  "{entry}";\n' for entry in sorted(entries))
    return f"// {_HEAD}\nUnattended-Upgrade::Package-Blacklist {{\n{lines}}};\n"
