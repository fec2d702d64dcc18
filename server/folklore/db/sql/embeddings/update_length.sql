-- Copy the length of a changed memory to its embeddings in every model. Its text is the same, and so are the lengths of
-- its passages.
update embeddings e set length = folklore_length(m.search)
from memories m
where e.namespace_id = :namespace::uuid and e.model_id = any(array(select id from models))
    and e.memory_id = any(:ids::uuid[]) and e.passage = 0
    and m.namespace_id = :namespace::uuid and m.id = e.memory_id
