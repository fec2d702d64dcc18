-- Extend the lease of :holder to :until and show what is :done so far. Returns no row if another process holds it by
-- now.
update jobs
set leased_until = :until::timestamptz, done = :done::jsonb
where name = :job::text and holder = :holder::text
returning name
