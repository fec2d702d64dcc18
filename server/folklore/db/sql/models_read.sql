-- Every model, the active one first, then the youngest.
select id, provider, name, dimensions, created_at, role, since, url, asked_dimensions, query_prefix, document_prefix,
    revision, probe
from models
order by role is distinct from 'active', created_at desc, id
