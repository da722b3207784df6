"""The benchmark of peptides: a small search for CSNN, a short protocol, and the whole one."""
