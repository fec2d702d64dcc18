-- What the HNSW index over one namespace's vectors in one model is called. Upkeep builds it where a namespace is large
-- (sql/hnsw_wanted.sql), drops it where nothing needs it, and a recall asks whether it is there; none is made here.
create function folklore_hnsw(namespace uuid, model uuid) returns text
language sql immutable parallel safe
return 'embeddings_hnsw_' || left(md5(namespace::text || '/' || model::text), 16);

-- What such an index holds: a vector with its text's size as one number more, so that what length alone explains can be
-- taken off by the question's own last number: nearest by score, not by cosine. Half of the size around 5, where most
-- lie: with a fifth steep questions lost more, with the whole of it the graph was bent too far.
create function folklore_sized(vector halfvec, length smallint) returns halfvec
language sql immutable parallel safe
return vector || array[(ln(length + 30.0::float8) - 5) / 2]::halfvec;
