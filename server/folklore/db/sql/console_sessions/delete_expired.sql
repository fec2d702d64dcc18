-- Delete at most :batch sessions and links that expired.
delete from console_sessions
where digest in (
    select digest from console_sessions where expires_at <= :now::timestamptz order by expires_at limit :batch::integer
)
returning digest
