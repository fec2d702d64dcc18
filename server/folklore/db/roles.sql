-- name: begin_as_token. Begin a transaction of a token: {mode} is checked in db/roles.py, {key} are 64 hexadecimal
-- digits. One round trip.
begin {mode};
set local role folklore_app;
select folklore_enter('{key}')

-- name: missing. The commands that the role for tokens (folklore_app) still needs, in order; none when it has
-- everything. A transaction may lock a row only if it may update a column of it: of a namespace, the languages. A
-- policy allows an insert there to those with a grant by pattern. The role may neither delete nor update whole rows,
-- which would allow it to lock tables: it deletes by functions, and updates neither keys nor authors.
select needed.command
from (select (select r.oid from pg_roles r where r.rolname = 'folklore_app') as id) role
cross join lateral (
    select string_agg(quote_ident(a.attname), ', ' order by a.attnum) as names,
        bool_and(has_column_privilege(role.id, a.attrelid, a.attnum, 'update')) as granted
    from pg_attribute a
    where a.attrelid = 'memories'::regclass and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
        and a.attname <> all('{namespace_id,id,author,agent,created_at,recall_count,last_recalled_at}')
) changeable
cross join lateral (
    values
        (1, role.id is not null, 'create role folklore_app login'),
        (2, pg_has_role(current_user, role.id, 'member'), format('grant folklore_app to %I', current_user)),
        (3, has_schema_privilege(role.id, current_schema(), 'usage'),
            format('grant usage on schema %I to folklore_app', current_schema())),
        (4, role.id is null or to_regclass('pg_dist_partition') is not null or not (has_table_privilege(role.id, 'memories', 'update, delete')
            or has_table_privilege(role.id, 'embeddings', 'update, delete')
            or has_table_privilege(role.id, 'fresh_words', 'update, delete')
            or has_table_privilege(role.id, 'relations', 'update, delete')
            or has_table_privilege(role.id, 'idempotency_keys', 'update, delete')),
            'revoke update, delete on memories, embeddings, fresh_words, relations, idempotency_keys from folklore_app'),
        (5, has_table_privilege(role.id, 'memories', 'insert') and has_table_privilege(role.id, 'embeddings', 'insert')
            and has_table_privilege(role.id, 'fresh_words', 'insert') and has_table_privilege(role.id, 'relations', 'insert')
            and has_table_privilege(role.id, 'revisions', 'insert') and has_table_privilege(role.id, 'models', 'insert')
            and has_table_privilege(role.id, 'idempotency_keys', 'insert'),
            'grant select, insert on memories, embeddings, fresh_words, relations, revisions, models, idempotency_keys'
            ' to folklore_app'),
        (6, changeable.granted, format('grant update (%s) on memories to folklore_app', changeable.names)),
        (7, has_column_privilege(role.id, 'embeddings', 'vector', 'update'),
            'grant update (passages, begins, ends, length, vector) on embeddings to folklore_app'),
        (8, has_column_privilege(role.id, 'relations', 'strength', 'update'),
            'grant update (strength) on relations to folklore_app'),
        (9, has_column_privilege(role.id, 'namespaces', 'languages', 'update'),
            'grant select, insert, update (languages) on namespaces to folklore_app'),
        (10, has_table_privilege(role.id, 'audit', 'insert'), 'grant insert on audit to folklore_app'),
        (11, has_table_privilege(role.id, 'postings', 'select') and has_table_privilege(role.id, 'packed_memories', 'select')
            and has_table_privilege(role.id, 'packed_namespaces', 'select'),
            'grant select on postings, packed_memories, packed_namespaces to folklore_app')
) needed (place, granted, command)
where not coalesce(needed.granted, false)
order by needed.place
