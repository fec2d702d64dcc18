-- Whoever has the chore keeps it until :until, and tells what is :done so far. No row: another has it now.
update jobs
set leased_until = :until::timestamptz, done = :done::jsonb
where name = :chore::text and holder = :holder::text
returning name
