-- The databases whose names are :beginning and 8 hexadecimal digits.
select d.datname as name
from pg_database d
where starts_with(d.datname, :beginning::text)
    and substr(d.datname, length(:beginning::text) + 1) ~ '^[0-9a-f]{8}$'
order by d.datname
