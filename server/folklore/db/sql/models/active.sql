-- The active model; no row before the first embedding.
select id from models where role = 'active'
