-- What an HNSW index holds: a vector with its text's size as one number more, so that what length alone explains can be
-- taken off by the question's own last number: nearest by score, not by cosine. Half of the size around 5, where most
-- lie: with a fifth steep questions lost more, with the whole of it the graph was bent too far.
create function folklore_sized(vector halfvec, length smallint) returns halfvec
language sql immutable parallel safe
return vector || array[(ln(length + 30.0::float8) - 5) / 2]::halfvec;

-- Another name: upkeep drops the indexes that hold vectors alone, and builds these.
create or replace function folklore_hnsw(namespace uuid, model uuid) returns text
language sql immutable parallel safe
return 'embeddings_hnsw_' || left(md5(namespace::text || '/' || model::text || '/sized'), 16);
