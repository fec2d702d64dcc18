-- Delete a model without role, whose embeddings are deleted already.
delete from models where id = :id::uuid and role is null
