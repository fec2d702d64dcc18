-- Included in the place of pool_vectors.sql where no vector is compared: embeddings are not read, whatever locks them.
cross join (select null::halfvec as vector, null::smallint as length) e
