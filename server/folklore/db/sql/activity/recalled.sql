-- How many memories of :namespaces were recalled on each day; :starts are the beginnings of the days, and `day` is a place
-- among them, from 0.
select width_bucket(u.used_at, :starts::timestamptz[]) - 1 as day, count(*) as memories
from usage u
where u.namespace_id = any(:namespaces::uuid[]) and u.used_at >= (:starts::timestamptz[])[1]
group by day
