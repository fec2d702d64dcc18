-- Make a model known. The first one of a store becomes the active one; two at once are told by models_role_key.
insert into models (
    id, provider, name, dimensions, created_at, role, since, url, asked_dimensions, query_prefix, document_prefix,
    revision, probe
)
select :id::uuid, :provider::text, :name::text, :dimensions::integer, :now::timestamptz, first.role,
    case when first.role is not null then :now::timestamptz end, :url::text, :asked_dimensions::integer,
    :query_prefix::text, :document_prefix::text, :revision::text, :probe::real[]
from (select case when not exists (select from models where role = 'active') then 'active' end as role) as first
on conflict (id) do nothing
