"""The test suite. `tests.schema_text` also writes schema.sql."""
