-- Give a model a role, or take it away with null. At most one model holds each.
update models set role = :role::text, since = :now::timestamptz where id = :id::uuid
