-- The number of namespaces that :author created since a time, deleted ones too.
select count(*) as created from namespaces where created_by = :author::text and created_at > :since::timestamptz
