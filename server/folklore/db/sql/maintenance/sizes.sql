-- The tables of this schema with the planner's estimate of their rows (none before the first ANALYZE), and their sizes; the
-- size of the database.
select c.relname::text as name, nullif(c.reltuples, -1)::bigint as rows, pg_table_size(c.oid) as table_bytes,
    pg_indexes_size(c.oid) as index_bytes, pg_database_size(current_database()) as database_bytes
from pg_class c
where c.relnamespace = 'public'::regnamespace and c.relkind = 'r'
order by pg_total_relation_size(c.oid) desc, c.relname
