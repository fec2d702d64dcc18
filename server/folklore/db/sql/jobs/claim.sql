-- Lease the job :job to :holder until :until. Returns a row if the job was free, or its last lease has expired, and if
-- it is due (:forced: due or not).
insert into jobs (name, holder, leased_until, started_at)
values (:job::text, :holder::text, :until::timestamptz, :now::timestamptz)
on conflict (name) do update
set holder = excluded.holder, leased_until = excluded.leased_until, started_at = excluded.started_at
where (jobs.holder is null or jobs.leased_until < :now::timestamptz)
    and (:forced::boolean or jobs.next_due is null or jobs.next_due <= :now::timestamptz)
returning notes
