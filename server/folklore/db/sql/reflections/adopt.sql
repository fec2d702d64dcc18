-- Make stated memories of those reflections among :ids whose members have changed: recall hid them, and a caller has
-- just stored the same text.
update memories m
set trust = 'stated'
where m.namespace_id = :namespace::uuid and m.id = any(:ids::uuid[])
    and not (true
-- include derived
    )
