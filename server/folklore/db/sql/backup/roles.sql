-- Every role but Postgres' own with its properties, memberships and settings, as one text each. Reads as a superuser.
select jsonb_build_array(
    r.rolname, r.rolsuper, r.rolinherit, r.rolcreaterole, r.rolcreatedb, r.rolcanlogin, r.rolreplication, r.rolbypassrls,
    r.rolconnlimit, r.rolpassword, r.rolvaliduntil,
    (select jsonb_agg(g.rolname order by g.rolname) from pg_auth_members m join pg_roles g on g.oid = m.roleid
        where m.member = r.oid),
    (select s.setconfig from pg_db_role_setting s where s.setrole = r.oid and s.setdatabase = 0))::text as role
from pg_authid r
where r.rolname !~ '^pg_'
order by r.rolname
