-- Register a model. The first one of a database becomes the active one; if two are first at once, models_role_key
-- refuses the second.
insert into models (
    id, provider, name, dimensions, created_at, role, since, url, asked_dimensions, query_prefix, document_prefix,
    revision, probe
)
select :id::uuid, :provider::text, :name::text, :dimensions::integer, :now::timestamptz, first.role,
    case when first.role is not null then :now::timestamptz end, :url::text, :asked_dimensions::integer,
    :query_prefix::text, :document_prefix::text, :revision::text, :probe::real[]
from (select case when not exists (select from models where role = 'active') then 'active' end as role) as first
on conflict (id) do nothing
