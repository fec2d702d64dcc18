-- name: active
select id from models where role = 'active'

-- name: delete
delete from models where id = :id::uuid and role is null

-- name: insert. Register a model. The first one of a database becomes the active one; if two are first at once,
-- models_role_key refuses the second.
insert into models (
    id, provider, name, dimensions, created_at, role, since, url, asked_dimensions, query_prefix, document_prefix,
    revision, probe
)
select :id::uuid, :provider::text, :name::text, :dimensions::integer, :now::timestamptz, first.role,
    case when first.role is not null then :now::timestamptz end, :url::text, :asked_dimensions::integer,
    :query_prefix::text, :document_prefix::text, :revision::text, :probe::real[]
from (select case when not exists (select from models where role = 'active') then 'active' end as role) as first
on conflict (id) do nothing

-- name: lock. Lock every model in order of id, so that changes of roles run one after the other.
select id, role from models order by id for update

-- name: read. Every model, the active one first, then the youngest.
select id, provider, name, dimensions, url, asked_dimensions, query_prefix, document_prefix, revision, probe, role,
    since
from models order by role is distinct from 'active', created_at desc, id

-- name: registered
select from models where id = :id::uuid

-- name: set_probe
update models set probe = :probe::real[] where id = :id::uuid and probe is null

-- name: set_role. Give a model a role, or take its role with null. At most one model holds each role.
update models set role = :role::text, since = :now::timestamptz where id = :id::uuid
