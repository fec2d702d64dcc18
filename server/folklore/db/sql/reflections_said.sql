-- Of :ids, texts that somebody just stored, those which upkeep had derived from others that are not as they were: nobody
-- saw them any more. Now they are what that person said.
update memories m
set trust = 'stated'
where m.namespace_id = :namespace::uuid and m.id = any(:ids::uuid[])
    and not (true
-- include derived
    )
