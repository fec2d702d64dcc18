-- name: claim. Lease the job :job to :holder until :until. Returns a row if the job was free, or its last lease has
-- expired or ends after :longest, which only a clock that was ahead can have written, and if it is due (:forced: due or
-- not).
insert into jobs (name, holder, leased_until, started_at)
values (:job::text, :holder::text, :until::timestamptz, :now::timestamptz)
on conflict (name) do update
set holder = excluded.holder, leased_until = excluded.leased_until, started_at = excluded.started_at
where (jobs.holder is null or jobs.leased_until < :now::timestamptz or jobs.leased_until > :longest::timestamptz)
    and (:forced::boolean or jobs.next_due is null or jobs.next_due <= :now::timestamptz)
returning coalesce(notes, '{}') as notes

-- name: finish. Record the run of :holder and end its lease. Returns no row if another process holds the lease by
-- now; then the run is not recorded.
update jobs
set holder = null, leased_until = null, finished_at = :now::timestamptz, seconds = :seconds::real,
    outcome = :outcome::text, done = :done::jsonb, error = :error::text, next_due = :next_due::timestamptz,
    notes = :notes::jsonb
where name = :job::text and holder = :holder::text returning name

-- name: read
select name, holder, leased_until, started_at, finished_at, seconds, outcome, done, error, next_due
from jobs order by name

-- name: renew. Extend the lease of :holder to :until and show what is :done so far. Returns no row if another process
-- holds it by now.
update jobs set leased_until = :until::timestamptz, done = :done::jsonb
where name = :job::text and holder = :holder::text returning name
