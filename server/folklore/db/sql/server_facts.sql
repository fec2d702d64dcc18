select version() as version,
    (select extversion from pg_extension where extname = 'vector') as pgvector,
    current_database() as database,
    current_user as role,
    pg_database_size(current_database()) as bytes
