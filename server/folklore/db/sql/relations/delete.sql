delete from relations r
using jsonb_to_recordset(:relations::jsonb) as d (from_id uuid, type text, to_id uuid)
where r.namespace_id = :namespace::uuid and r.from_id = d.from_id and r.type = d.type and r.to_id = d.to_id
returning r.from_id, r.type, r.to_id
