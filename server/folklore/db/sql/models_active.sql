-- Which model counts; no row while nothing was ever embedded.
select id from models where role = 'active'
