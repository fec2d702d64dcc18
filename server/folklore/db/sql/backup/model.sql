-- The active embedding model.
select provider || '/' || name || '/' || dimensions as model from models where role = 'active'
