-- Cancel the statement of the server process :pid if it waits for a lock.
select pg_cancel_backend(a.pid) as cancelled
from pg_stat_activity a
where a.pid = :pid::integer and a.application_name = 'folklore' and a.wait_event_type = 'Lock'
