delete from models where id = :id::uuid and role is null
