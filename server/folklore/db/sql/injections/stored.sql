-- The latest texts that a caller stored, with ids from :first on: an id begins with the time at which it was made.
select m.content
from memories m
where m.namespace_id = any(:namespaces::uuid[]) and m.id >= :first::uuid and m.author = :caller::text
    and m.forgotten_at is null
order by m.id desc
limit 50
