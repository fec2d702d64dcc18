-- The databases whose names begin with :prefix.
select d.datname as name from pg_database d where starts_with(d.datname, :prefix::text) order by d.datname
