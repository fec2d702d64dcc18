insert into embeddings (namespace_id, model_id, memory_id, length, vector)
select :into::uuid, e.model_id, e.memory_id, e.length, e.vector
from embeddings e
where e.namespace_id = :namespace::uuid and e.model_id = any(array(select id from models))
    and e.memory_id = any(:ids::uuid[])
