-- name: enter. Declare in a transaction for which token it runs, by the token's key. It is a parameter: the text of a
-- statement may be in the log of any node.
select folklore_enter(:key::text)

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
        (4, role.id is null or to_regclass('pg_dist_partition') is not null or not exists (
            select from unnest('{memories,embeddings,fresh_words,relations,idempotency_keys}'::text[]) as held (name)
            where has_table_privilege(role.id, held.name, 'update, delete')),
            'revoke update, delete on memories, embeddings, fresh_words, relations, idempotency_keys from folklore_app'),
        (6, changeable.granted, format('grant update (%s) on memories to folklore_app', changeable.names)),
        (12, has_column_privilege(role.id, 'embeddings', 'cues', 'update'),
            'grant update (cues) on embeddings to folklore_app')
    union all
    select given.number, bool_and(has_any_column_privilege(role.id, held.name, given.tested)),
        format('grant %s on %s to folklore_app', given.privileges, string_agg(held.name, ', '))
    from (
        values (5, 'insert', 'select, insert',
                '{memories,embeddings,fresh_words,relations,revisions,models,idempotency_keys}'::text[]),
            (7, 'update', 'update (passages, begins, ends, length, vector)', '{embeddings}'),
            (8, 'update', 'update (strength)', '{relations}'),
            (9, 'update', 'select, insert, update (languages)', '{namespaces}'),
            (10, 'insert', 'insert', '{audit}'),
            (11, 'select', 'select', '{postings,packed_memories,packed_namespaces}')
    ) given (number, tested, privileges, names)
    cross join unnest(given.names) as held (name)
    group by given.number, given.privileges
) needed (number, granted, command)
where not coalesce(needed.granted, false)
order by needed.number
