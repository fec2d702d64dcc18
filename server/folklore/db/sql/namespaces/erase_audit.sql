-- Delete the audit log of a namespace.
delete from audit where namespace_id = :namespace::uuid
