-- Grant the token :token each of :namespaces in the role at the same place of :roles.
insert into grants (token_id, namespace_id, role)
select :token::uuid, opened.namespace_id, opened.role
from unnest(:namespaces::uuid[], :roles::text[]) as opened (namespace_id, role)
