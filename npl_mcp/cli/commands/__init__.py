"""The commands of ``npl-load`` and ``npl-worklog``."""
