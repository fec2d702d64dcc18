-- Whoever moves a role waits for whoever is moving one. In order of id.
select id, role from models order by id for update
