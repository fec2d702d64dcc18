-- Principals' names are told apart as those of namespaces (0009): whatever the case of A – Z, every other letter for itself,
-- on every server alike. By lower() alone the server's locale made İpek and ipek, or ΝΙΚΟΣ and νικος, one person, to whom
-- the tokens of both belonged.
drop index principals_name_key;

-- Where the small I is ı, API and api were two. They stay two, with the tokens of each: the one made first keeps its name,
-- a later one gets the end of its id into its own.
update principals as later
set name = left(later.name, 187) || '-' || right(later.id::text, 12)
where exists (
    select from principals earlier
    where lower(earlier.name collate "C") = lower(later.name collate "C")
        and (earlier.created_at, earlier.id) < (later.created_at, later.id)
);

create unique index principals_name_key on principals (lower(name collate "C"));
