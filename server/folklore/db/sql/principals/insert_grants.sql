-- What the token :token opens: :namespaces, each in the role at its place.
insert into grants (token_id, namespace_id, role)
select :token::uuid, opened.namespace_id, opened.role
from unnest(:namespaces::uuid[], :roles::text[]) as opened (namespace_id, role)
