-- Every table with its schema, those of extensions left out, and its columns but the generated ones, which a restore
-- computes anew; all names as they are written in a statement.
select format('%I.%I', n.nspname, c.relname) as name, columns.names as columns
from pg_class c
join pg_namespace n on n.oid = c.relnamespace
cross join lateral (
    select string_agg(format('r.%I', a.attname), ', ' order by a.attnum) as names
    from pg_attribute a
    where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
) columns
where c.relkind in ('r', 'p') and not c.relispartition and columns.names is not null
    and n.nspname <> 'information_schema' and n.nspname !~ '^pg_'
    and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')
order by name
