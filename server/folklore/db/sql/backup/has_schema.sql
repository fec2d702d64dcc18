-- Whether migrations were applied to this database.
select to_regclass('folklore_migrations') is not null as has_schema
