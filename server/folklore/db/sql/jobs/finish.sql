-- Record the run of :holder and end its lease. Returns no row if another process holds the lease by now; then the run
-- is not recorded.
update jobs
set holder = null, leased_until = null, finished_at = :now::timestamptz, seconds = :seconds::real,
    outcome = :outcome::text, done = :done::jsonb, error = :error::text, next_due = :next_due::timestamptz,
    notes = :notes::jsonb
where name = :job::text and holder = :holder::text
returning name
