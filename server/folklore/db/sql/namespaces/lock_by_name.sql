-- Lock a namespace as namespaces/lock does, for a store that also supersedes or relates. It must come before
-- namespaces/ensure: two transactions that both share a lock could only upgrade it by a deadlock.
select id from namespaces where lower(name collate "C") = lower(:name::text collate "C") and deleted_at is null for update
