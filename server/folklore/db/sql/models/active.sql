select id from models where role = 'active'
