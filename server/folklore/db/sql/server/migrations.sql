select name, checksum from folklore_migrations
