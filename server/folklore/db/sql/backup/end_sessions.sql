-- End every other session in these databases.
select count(pg_terminate_backend(a.pid)) as ended
from pg_stat_activity a
where a.datname = any (:names::text[]) and a.pid <> pg_backend_pid()
