-- The applied migrations.
select name, checksum from folklore_migrations
