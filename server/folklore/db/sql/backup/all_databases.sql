-- The databases but the templates, and but those whose names are :scratch and 8 hexadecimal digits.
select d.datname as name
from pg_database d
where not d.datistemplate and d.datallowconn
    and not (starts_with(d.datname, :scratch::text) and substr(d.datname, length(:scratch::text) + 1) ~ '^[0-9a-f]{8}$')
order by d.datname
