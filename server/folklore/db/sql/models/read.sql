-- Every model, the active one first, then the youngest.
select id, provider, name, dimensions, url, asked_dimensions, query_prefix, document_prefix, revision, probe, role,
    since
from models order by role is distinct from 'active', created_at desc, id
