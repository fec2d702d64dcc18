-- In place of pool_vectors.sql if no vectors are compared: embeddings are not read, so no lock on them can stop this.
cross join (select null::halfvec as vector, null::smallint as length) e
cross join (
    select null::smallint[] as begins, null::smallint[] as ends, null::smallint[] as lengths, null::real[] as cosines
) part
