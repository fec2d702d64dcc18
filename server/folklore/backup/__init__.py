"""Backups of a whole database: written by pg_dump, verified in a copy, restored into a new database."""
