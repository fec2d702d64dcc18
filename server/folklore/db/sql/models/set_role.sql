-- Give a model a role, or take its role with null. At most one model holds each role.
update models set role = :role::text, since = :now::timestamptz where id = :id::uuid
