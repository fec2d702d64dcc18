-- Up to :batch memories that were forgotten before :before, held so that nobody brings them back meanwhile.
select m.id
from memories m
where m.namespace_id = :namespace::uuid and m.forgotten_at < :before::timestamptz
order by m.id
limit :batch::integer
for update skip locked
