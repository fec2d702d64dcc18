-- Every memory of one namespace, forgotten and superseded ones too, in an order that any database repeats.
declare folklore_transfer no scroll cursor for
select
-- include transfer_entry
from memories m
where m.namespace_id = :namespace::uuid
order by m.created_at, m.id
