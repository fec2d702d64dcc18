-- The command that creates an empty database with the locale of this one; {name} is filled in by the caller.
select format(
    'create database {name} template template0 encoding %L locale_provider %s lc_collate %L lc_ctype %L%s',
    pg_encoding_to_char(d.encoding),
    case d.datlocprovider when 'i' then 'icu' when 'b' then 'builtin' else 'libc' end,
    d.datcollate, d.datctype,
    case d.datlocprovider
        when 'i' then format(' icu_locale %L', coalesce(to_jsonb(d) ->> 'datlocale', to_jsonb(d) ->> 'daticulocale'))
        when 'b' then format(' builtin_locale %L', to_jsonb(d) ->> 'datlocale')
        else ''
    end) as command
from pg_database d
where d.datname = current_database()
