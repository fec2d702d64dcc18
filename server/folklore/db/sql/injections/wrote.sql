-- Whether a caller has written memories since a time.
select exists (
    select from audit a
    where a.namespace_id = any(:namespaces::uuid[]) and a.at >= :since::timestamptz and a.principal = :caller::text
        and a.action = any(:writes::text[]) and a.outcome = 'done'
) as wrote
