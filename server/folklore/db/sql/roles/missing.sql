-- The commands that the role for tokens (folklore_app) still needs, in order; none when it has everything. A transaction
-- may lock a row only if it may update a column of it: of a namespace, the languages. A policy allows an insert there
-- to those with a grant by pattern.
select needed.command
from (select (select r.oid from pg_roles r where r.rolname = 'folklore_app') as id) role
cross join lateral (
    values
        (1, role.id is not null, 'create role folklore_app login'),
        (2, pg_has_role(current_user, role.id, 'member'), format('grant folklore_app to %I', current_user)),
        (3, has_schema_privilege(role.id, current_schema(), 'usage'),
            format('grant usage on schema %I to folklore_app', current_schema())),
        (4, has_table_privilege(role.id, 'memories', 'delete') and has_table_privilege(role.id, 'embeddings', 'delete')
            and has_table_privilege(role.id, 'postings', 'delete') and has_table_privilege(role.id, 'relations', 'delete'),
            'grant select, insert, update, delete on memories, embeddings, postings, relations to folklore_app'),
        (5, has_table_privilege(role.id, 'revisions', 'insert') and has_table_privilege(role.id, 'models', 'insert'),
            'grant select, insert on revisions, models to folklore_app'),
        (6, has_column_privilege(role.id, 'namespaces', 'languages', 'update'),
            'grant select, insert, update (languages) on namespaces to folklore_app'),
        (7, has_table_privilege(role.id, 'audit', 'insert'), 'grant insert on audit to folklore_app'),
        (8, has_table_privilege(role.id, 'idempotency_keys', 'insert'),
            'grant select, insert, delete on idempotency_keys to folklore_app')
) needed (place, granted, command)
where not coalesce(needed.granted, false)
order by needed.place
