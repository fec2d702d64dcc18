-- The command that drops a database and ends its sessions.
select format('drop database if exists %I with (force)', :name::text) as command
