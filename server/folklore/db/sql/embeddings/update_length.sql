-- Copy the length of a changed text from its postings to its embeddings in every model.
update embeddings e set length = p.length
from postings p
where e.namespace_id = :namespace::uuid and e.model_id = any(array(select id from models))
    and e.memory_id = any(:ids::uuid[])
    and p.namespace_id = :namespace::uuid and p.lexeme = '' and p.memory_id = e.memory_id
