-- The schema of the extension pgvector; no row without it.
select n.nspname from pg_extension e join pg_namespace n on n.oid = e.extnamespace where e.extname = 'vector'
