-- The migrations that were applied, for whoever asks whether the schema is the one he knows.
select name from folklore_migrations
