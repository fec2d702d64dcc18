-- Clear superseded_by where it names one of :ids, which are erased next. The memories stay superseded.
update memories m set superseded_by = null
where m.namespace_id = :namespace::uuid and m.superseded_by = any(:ids::uuid[])
