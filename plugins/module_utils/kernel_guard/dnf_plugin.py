# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plugin by which dnf 4 asks the guard. A text, for the host's own Python (3.6 and newer) and dnf's own modules.

Source: dnf's plugin.py and base.py (``resolved`` is called when the transaction is known, ``pre_transaction`` just
before it is done; a dnf.exceptions.Error stops it, any other exception is logged).
"""
from __future__ import annotations

from . import script

NAME = "baremetal_nvidia_guard.py"

PLUGIN = r'''# Managed by baremetal.nvidia (module kernel_guard): changes by hand are undone by its next run.
"""Asks the kernel guard of baremetal.nvidia about each transaction. Open on its own errors, closed on a match."""
import logging
import os
import subprocess
import sys

import dnf
import dnf.exceptions

GUARD = "@PATH@"

class KernelGuard(dnf.Plugin):

    name = "baremetal_nvidia_guard"

    def resolved(self):
        self.ask("look")

    def pre_transaction(self):
        self.ask("take")

    def lines(self):
        found = ["command %s" % " ".join(os.path.basename(word) if n == 0 else word for n, word in enumerate(sys.argv))]
        transaction = self.base.transaction
        for verb, packages in (("install", transaction.install_set), ("remove", transaction.remove_set)):
            for package in packages:
                if package.name.startswith("kernel"):
                    found.append("%s %s %s-%s.%s" % (
                        verb, package.name, package.version, package.release, package.arch))
        return found

    def ask(self, how):
        try:
            if not self.base.transaction or not os.access(GUARD, os.X_OK) or self.base.conf.installroot != "/":
                return
            lines = self.lines()
            if len(lines) < 2:
                return
            child = subprocess.Popen([GUARD, "lines", how], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
            _out, err = child.communicate(("\n".join(lines) + "\n").encode("utf-8"), timeout=30)
            refused = child.returncode == @REFUSED@
        except Exception as exc:  # the guard is open on its own errors
            logging.getLogger("dnf").warning("kernel guard of baremetal.nvidia: %s", exc)
            return
        if refused:
            raise dnf.exceptions.Error(err.decode("utf-8", "replace").strip())
'''.replace("@PATH@", script.PATH).replace("@REFUSED@", str(script.REFUSED))
