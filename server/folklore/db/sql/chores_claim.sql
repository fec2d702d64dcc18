-- Take the chore :chore for :holder until :until; a row comes back if it was to be had: nobody has it, or whoever had it
-- let the time pass, and it is due (:forced: due or not).
insert into jobs (name, holder, leased_until, started_at)
values (:chore::text, :holder::text, :until::timestamptz, :now::timestamptz)
on conflict (name) do update
set holder = excluded.holder, leased_until = excluded.leased_until, started_at = excluded.started_at
where (jobs.holder is null or jobs.leased_until < :now::timestamptz)
    and (:forced::boolean or jobs.next_due is null or jobs.next_due <= :now::timestamptz)
returning notes
