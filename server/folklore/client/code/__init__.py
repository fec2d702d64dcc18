"""Memories tied to code: paths in one spelling, and marks on memories whose files changed since."""
