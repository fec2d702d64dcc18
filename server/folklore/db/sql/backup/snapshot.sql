-- The name by which other connections can read this transaction's moment of the database.
select pg_export_snapshot() as snapshot
