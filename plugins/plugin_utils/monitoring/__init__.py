# Copyright (c) 2026, baremetal.nvidia maintainers
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What watches GPUs: metrics of the exporters, alerts, the dashboard, the adapter's rules, and the objects around them.

Data and pure functions; knows the model alone. The same alerts and panels serve a cluster (dcgm-exporter of the
operator), a host with dcgm-exporter, and a host with the collector of the role gpu_monitoring.
"""
