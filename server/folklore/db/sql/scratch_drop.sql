-- With whoever is still connected.
select format('drop database if exists %I with (force)', :name::text) as command
