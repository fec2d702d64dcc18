-- A command cannot take a name as a parameter, so Postgres itself spells it.
select format('create database %I', :name::text) as command
