-- Clear superseded_by where it names a memory of another namespace. The memories stay superseded.
update memories m set superseded_by = null
where m.namespace_id = :namespace::uuid and m.superseded_by is not null and (
    select s.id from memories s where s.namespace_id = :namespace::uuid and s.id = m.superseded_by
) is null
