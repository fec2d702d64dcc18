-- A model whose vectors are gone, unless it has a role.
delete from models where id = :id::uuid and role is null
