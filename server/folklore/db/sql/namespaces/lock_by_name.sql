-- As namespaces_hold, for a store that also replaces or relates. It comes first: a lock that is shared already could
-- only be made exclusive by waiting for others who want the same.
select id from namespaces where lower(name collate "C") = lower(:name::text collate "C") and deleted_at is null for update
