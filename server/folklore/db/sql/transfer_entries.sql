-- The memories :ids whole, to compare with what would replace them.
select
-- include transfer_entry
from memories m
where m.namespace_id = :namespace::uuid and m.id = any(:ids::uuid[])
