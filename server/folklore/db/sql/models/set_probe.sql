-- Record the fingerprint of a model that has none.
update models set probe = :probe::real[] where id = :id::uuid and probe is null
