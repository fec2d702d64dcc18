-- The next :most memories in force that may be near-duplicates of others, from the newest to the oldest, after :after.
select m.id
from memories m
where m.namespace_id = :namespace::uuid and (:after::uuid is null or m.id < :after::uuid)
    and m.forgotten_at is null and m.superseded_at is null and m.trust <> 'derived'
    and ({m.ends_at} is null or {m.ends_at} > :now::timestamptz)
order by m.id desc
limit :most::integer
