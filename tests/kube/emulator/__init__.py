# SPDX-License-Identifier: GPL-3.0-or-later
"""A Kubernetes API server as far as helm, kubectl and kubernetes.core go: a stand-in for a cluster, for tests.

It keeps objects in memory, learns kinds from CustomResourceDefinitions, drops fields that their schema does not know
(as a real server does, without a word), and plays the few controllers that the operator's installation waits for.
No pod ever runs.
"""
