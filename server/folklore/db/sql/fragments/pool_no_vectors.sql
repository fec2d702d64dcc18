-- In place of pool_vectors.sql if no vectors are compared: embeddings are not read, so no lock on them can stop this.
cross join (
    select null::halfvec as vector, null::smallint as length, null::smallint[] as passages, null::real[] as cosines
) e
