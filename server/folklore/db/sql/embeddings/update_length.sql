-- A memory whose words changed has another length; its vectors in every model learn it from the postings.
update embeddings e set length = p.length
from postings p
where e.namespace_id = :namespace::uuid and e.model_id = any(array(select id from models))
    and e.memory_id = any(:ids::uuid[])
    and p.namespace_id = :namespace::uuid and p.lexeme = '' and p.memory_id = e.memory_id
