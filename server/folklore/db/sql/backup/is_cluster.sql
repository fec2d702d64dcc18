-- Whether the tables are distributed over a cluster.
select exists (select from pg_extension where extname = 'citus') as is_cluster
