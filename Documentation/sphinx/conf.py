# SPDX-License-Identifier: GPL-2.0-only
"""Sphinx, for the documentation as a site: scripts/html."""
import os
import sys

# The kernel's own extension for kernel-doc comments.
kernel = os.environ["KERNEL_SOURCE"]
root = os.environ["KVERBS_ROOT"]
sys.path.insert(0, os.path.join(kernel, "Documentation/sphinx"))

project = "kverbs"
with open(os.path.join(root, "VERSION"), encoding="ascii") as file:
    version = release = file.read().strip()
copyright = "the authors of kverbs, GPL-2.0-only"
extensions = ["kerneldoc"]
kerneldoc_bin = os.path.join(kernel, "scripts/kernel-doc")
kerneldoc_srctree = root
primary_domain = "c"
highlight_language = "none"
html_theme = "alabaster"
html_theme_options = {"description": "An RDMA midlayer", "fixed_sidebar": True,
                      "page_width": "64rem"}
html_copy_source = False
html_show_sphinx = False
c_id_attributes = ["__must_check", "__cold", "__attribute_const__", "noinline", "__printf"]
