-- Names of namespaces are one whatever the case of A – Z; every other letter stands for itself. lower() alone follows the
-- server's locale: ICU makes ΟΔΟΣ and οδος one name, the rules of C.UTF-8 make İstanbul and istanbul one, Turkish ones
-- keep API and api apart; and none of them is Python's. By "C" it is the same everywhere, and text/names.py does it too.
drop index namespaces_name_key;

-- Other rules tell less apart, but for those like the Turkish, where the small I is ı. What was two there stays two: the
-- one made first keeps its name, a later one gets the end of its id into its own.
update namespaces as later
set name = left(later.name, 87) || '-' || right(later.id::text, 12)
where later.deleted_at is null
    and exists (
        select from namespaces earlier
        where earlier.deleted_at is null
            and lower(earlier.name collate "C") = lower(later.name collate "C")
            and (earlier.created_at, earlier.id) < (later.created_at, later.id)
    );

create unique index namespaces_name_key on namespaces (lower(name collate "C")) where deleted_at is null;
