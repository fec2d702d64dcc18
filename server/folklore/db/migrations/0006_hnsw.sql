-- What the HNSW index over one namespace's vectors in one model is called. Upkeep builds it where a namespace is large
-- (sql/hnsw_wanted.sql), drops it where nothing needs it, and a recall asks whether it is there; none is made here.
create function folklore_hnsw(namespace uuid, model uuid) returns text
language sql immutable parallel safe
return 'embeddings_hnsw_' || left(md5(namespace::text || '/' || model::text), 16);
