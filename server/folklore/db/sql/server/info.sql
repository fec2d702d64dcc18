select version() as version, current_setting('server_version_num')::integer / 10000 as major,
    (select extversion from pg_extension where extname = 'vector') as pgvector,
    (select default_version from pg_available_extensions where name = 'vector') as offered,
    current_database() as database, current_user as role,
    pg_database_size(current_database()) as bytes
