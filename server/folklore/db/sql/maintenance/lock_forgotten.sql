-- Up to :batch memories forgotten before :before, locked so that no caller restores them meanwhile.
select m.id
from memories m
where m.namespace_id = :namespace::uuid and m.forgotten_at < :before::timestamptz
order by m.id
limit :batch::integer
for update skip locked
