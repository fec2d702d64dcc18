-- The run of :holder is over. No row: another has the chore now, and what this run says counts no more.
update jobs
set holder = null, leased_until = null, finished_at = :now::timestamptz, seconds = :seconds::real,
    outcome = :outcome::text, done = :done::jsonb, error = :error::text, next_due = :next_due::timestamptz,
    notes = :notes::jsonb
where name = :chore::text and holder = :holder::text
returning name
