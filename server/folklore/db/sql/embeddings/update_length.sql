-- Copy the length of a changed memory from its postings to its embeddings in every model. Its text is the same, and so
-- are the lengths of its passages.
update embeddings e set length = p.length
from postings p
where e.namespace_id = :namespace::uuid and e.model_id = any(array(select id from models))
    and e.memory_id = any(:ids::uuid[]) and e.passage = 0
    and p.namespace_id = :namespace::uuid and p.lexeme = '' and p.memory_id = e.memory_id
