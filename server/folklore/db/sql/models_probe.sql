-- A model that was known before fingerprints were kept gets its own.
update models set probe = :probe::real[] where id = :id::uuid and probe is null
