"""Faults below the process and between processes, and a check of what clients saw meanwhile."""
