-- The commands that the role for tokens still needs, in order; none when all is well. Who locks a row must be allowed
-- to change something of it: of a namespace, the languages it has learned. No policy lets it insert one all the same.
with role as (
    select r.oid from pg_roles r where r.rolname = 'folklore_app'
),
state as (
    select exists (select from role) as there,
        coalesce((select pg_has_role(current_user, oid, 'member') from role), false) as ours,
        coalesce((
            select has_table_privilege(oid, 'audit', 'insert') and has_schema_privilege(oid, current_schema(), 'usage')
            from role
        ), false) as admitted,
        coalesce((
            select coalesce(has_table_privilege(oid, to_regclass('idempotency_keys'), 'insert'), true) from role
        ), false) as keyed
)
select needed.command
from state
cross join lateral (
    values
        (1, not there, 'create role folklore_app login'),
        (2, not ours, format('grant folklore_app to %I', current_user)),
        (3, not admitted, format('grant usage on schema %I to folklore_app', current_schema())),
        (4, not admitted, 'grant select, insert, update, delete on memories, embeddings, postings, relations to folklore_app'),
        (5, not admitted, 'grant select, insert on revisions, models to folklore_app'),
        (6, not admitted, 'grant select, insert, update (languages) on namespaces to folklore_app'),
        (7, not admitted, 'grant insert on audit to folklore_app'),
        (8, not keyed, 'grant select, insert, delete on idempotency_keys to folklore_app')
) needed (place, lacks, command)
where needed.lacks
order by needed.place
