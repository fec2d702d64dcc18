-- The databases whose names begin with :prefix, with the command that drops each.
select d.datname as name, format('drop database if exists %I with (force)', d.datname) as drop_command
from pg_database d
where starts_with(d.datname, :prefix::text)
order by d.datname
