update models set probe = :probe::real[] where id = :id::uuid and probe is null
