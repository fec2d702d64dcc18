-- Delete a preset; returns it if there was one.
delete from presets where name = :name::text returning name
