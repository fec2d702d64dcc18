-- Those that were superseded by one of :ids stay superseded, by nobody that can be named any more.
update memories m set superseded_by = null
where m.namespace_id = :namespace::uuid and m.superseded_by = any(:ids::uuid[])
