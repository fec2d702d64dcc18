-- Remove statements of a caller that were stored, or that a person dropped.
update assistant_sessions s
set stated = s.stated - :sentences::text[]
where s.namespace_id = :namespace::uuid and s.caller = :caller::text and s.stated ?| :sentences::text[]
returning s.session
