-- What the memories :ids replaced stays replaced, by something that is gone.
update memories m
set superseded_by = null
where m.namespace_id = :namespace::uuid and m.superseded_by = any(:ids::uuid[])
