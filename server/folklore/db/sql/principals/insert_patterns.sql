-- Grant the token :token the role at the same place of :roles in the namespaces that begin with each of :prefixes.
insert into pattern_grants (token_id, prefix, role)
select :token::uuid, opened.prefix, opened.role
from unnest(:prefixes::text[], :roles::text[]) as opened (prefix, role)
