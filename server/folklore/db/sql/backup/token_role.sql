-- The command that creates the role for tokens, which a dump's privileges name; none if it exists.
select 'create role folklore_app login' as command
where not exists (select from pg_roles where rolname = 'folklore_app')
