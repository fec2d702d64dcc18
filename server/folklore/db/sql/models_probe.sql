-- Record the fingerprint of a model registered before fingerprints were kept.
update models set probe = :probe::real[] where id = :id::uuid and probe is null
